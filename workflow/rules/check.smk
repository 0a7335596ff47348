# The regression check: did numbers leave their tolerance? The rule has no output, so that it runs whenever it is asked for, and
# results/<scale>/check.csv stays if it fails.
from suite.targets import checked_tables


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
        tables=lambda wildcards: checked_tables(suite)[0],
        left_out=lambda wildcards: checked_tables(suite)[1],
    script:
        "../scripts/check.py"
