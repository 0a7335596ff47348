# Two rules for each artifact (table or figure) of analyses/. The first builds it in the scale's folder. The second copies it to
# results/, which shows the scale that was asked for last: going back to an earlier scale copies, and builds nothing.


for artifact_name in suite.artifacts:

    rule:
        name:
            artifact_name
        localrule: True  # takes seconds: not worth a job of a cluster
        retries: 0  # the profile's are for jobs of a cluster
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
            # A function: Snakemake calls it only for artifacts that it needs. For all of them it would delay every job.
            sources=lambda wildcards, name=artifact_name: digest(artifact_files(name)),
        script:
            "../scripts/artifact.py"

    rule:
        name:
            f"show_{artifact_name}"
        localrule: True
        retries: 0
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
