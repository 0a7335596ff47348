"""Rules of artifacts: build one from the records."""

from pathlib import Path

from job import job

with job(snakemake):
    from suite.context import Context
    from suite.recorded.marking import build_artifact
    from suite.scale import load_scale

    # This artifact alone is imported: with all the others, imports would take longer than the work.
    scale = load_scale({"scale": snakemake.params.scale, "seeds": snakemake.params.seeds})
    results = Path(snakemake.params.results)
    build_artifact(snakemake.params.artifact, Context(scale, results / scale.name, home=results))
