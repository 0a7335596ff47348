# The regression check: did numbers leave their tolerance? The rule has no output, so that it runs whenever it is asked for, and
# results/<scale>/check.csv stays if it fails.

rule check:
    input:
        [path for name in suite.in_all for path in suite.outputs(name)],
    log:
        RESULTS / "logs" / suite.scale.name / "check.log",
    conda:
        "../../environment.yml"
    retries: 0  # the profile's are for jobs of a cluster
    params:
        scale=suite.scale.name,
        results=str(suite.folder),
        tables=[
            output
            for name, artifact in suite.artifacts.items()
            for output in artifact.outputs
            if output.endswith(".csv") and (artifact.in_all or (suite.folder / output).exists())
        ],
    script:
        "../scripts/check.py"
