# Tables and figures: one rule each, found by where they lie in analyses/.


for artifact_name, artifact in suite.artifacts.items():

    rule:
        name:
            artifact_name
        localrule: True  # seconds each: not worth a job of a cluster's
        input:
            suite.records(artifact_name),
            suite.sources(artifact_name),
        output:
            [
                report(
                    RESULTS / output,
                    category=artifact.label.partition(" ")[0],
                    subcategory=artifact.label,
                    labels={"file": output},
                )
                for output in artifact.outputs
            ],
        log:
            RESULTS / "logs" / f"{artifact_name}.log",
        conda:
            "../../environment.yml"
        params:
            artifact=artifact_name,
            results=str(RESULTS),
            scale=suite.scale.name,
            seeds=list(suite.scale.seeds),
            digests=suite.digests(artifact_name),
            sources=artifact_sources(artifact_name),
        script:
            "../scripts/artifact.py"
