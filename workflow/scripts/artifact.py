"""Rules of artifacts: build one from the records."""

from job import job

with job(snakemake):
    from analyses.artifact import Context
    from analyses.suite import RESULTS, load_suite

    suite = load_suite({"scale": snakemake.params.scale, "seeds": snakemake.params.seeds})
    suite.artifacts[snakemake.params.artifact].build(Context(suite.scale, RESULTS))
