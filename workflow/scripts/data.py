"""Rule ``data``: prepare the scale's data."""

from pathlib import Path

from job import job

if __name__ == "__main__":  # preparing starts processes, which on some systems import this file again
    with job(snakemake):
        from poet.data.prepare import prepare
        from poet.launch.sources import data_sources
        from suite.sources import write_note

        folder = Path(snakemake.output.meta).parent
        prepare(snakemake.params.data, folder, Path(snakemake.params.cache), processes=snakemake.threads)
        write_note(folder / "sources.json", data_sources(snakemake.params.data["corpus"]))
