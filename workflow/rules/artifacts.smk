# Tables and figures: one rule each, found by looking into analyses/.


for artifact_name, artifact in suite.artifacts.items():

    rule:
        name:
            artifact_name
        input:
            records=suite.records(artifact_name),
            sources=artifact_sources(artifact_name),
        output:
            [RESULTS / output for output in artifact.outputs],
        params:
            artifact=artifact_name,
            scale=suite.scale.name,
            seeds=list(suite.scale.seeds),
            digests=suite.digests(artifact_name),
        log:
            RESULTS / "logs" / f"{artifact_name}.log",
        conda:
            "../../environment.yml"
        script:
            "../scripts/artifact.py"
