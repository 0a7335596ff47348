"""Rule ``data``: prepare the scale's data."""

from pathlib import Path

from job import job

if __name__ == "__main__":  # cleaning starts processes, which on some systems import this file again
    with job(snakemake):
        from poet.data.prepare import prepare

        prepare(snakemake.params.data, Path(snakemake.output.meta).parent, Path(snakemake.params.cache))
