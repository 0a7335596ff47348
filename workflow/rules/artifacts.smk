# Tables and figures: two rules each, found by where they lie in analyses/. One builds it in the folder of the scale; the other
# copies it to where the scale that was asked for last is shown. Going back to a scale copies, and builds nothing.


for artifact_name in suite.artifacts:

    rule:
        name:
            artifact_name
        localrule: True  # seconds each: not worth a job of a cluster's
        input:
            suite.records(artifact_name),
            suite.sources(artifact_name),
        output:
            suite.outputs(artifact_name),
        log:
            RESULTS / "logs" / suite.scale.name / f"{artifact_name}.log",
        conda:
            "../../environment.yml"
        params:
            artifact=artifact_name,
            results=str(RESULTS),
            scale=suite.scale.name,
            seeds=list(suite.scale.seeds),
            digests=suite.digests(artifact_name),
            built_from=list(map(str, suite.sources(artifact_name))),
            # Only of an artifact that is looked at: of all of them, each job would wait for it.
            sources=lambda wildcards, name=artifact_name: artifact_sources(name),
        script:
            "../scripts/artifact.py"

    rule:
        name:
            f"show_{artifact_name}"
        localrule: True
        input:
            made=suite.outputs(artifact_name),
            beside=suite.shown_beside(artifact_name),
        output:
            suite.shown(artifact_name),
        log:
            RESULTS / "logs" / suite.scale.name / f"show_{artifact_name}.log",
        params:
            scale=suite.scale.name,
        shell:
            "for file in {input.made}; do cp $file {RESULTS}/${{file#{suite.folder}/}}; done 2> {log}"
