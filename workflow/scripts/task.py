"""Rules ``task_*``: the examples of a finetuning task."""

from pathlib import Path

from job import job

with job(snakemake):
    from poet.finetuning.examples import prepare_task

    prepare_task(snakemake.params.task, snakemake.params.data, Path(snakemake.output[0]).parent, Path(snakemake.params.cache))
