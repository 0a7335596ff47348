"""Rule ``bart``: the pretrained BART of the hub, or of a local folder."""

from pathlib import Path

from job import job

with job(snakemake):
    from poet.finetuning.problems.bart import fetch_bart
    from suite.summarization import check_base

    check_base(snakemake.params.source)
    fetch_bart(snakemake.params.source, Path(snakemake.output[0]).parent)
