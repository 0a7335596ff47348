"""Rules ``train_*``: one run."""

from pathlib import Path

from job import job

with job(snakemake):
    from poet.training.loop import train
    from poet.training.spec import RunSpec

    train(
        RunSpec.from_dict(snakemake.params.spec),
        data=Path(snakemake.input[0]).parent,
        folder=Path(snakemake.output.record).parent,
        checkpoints=Path(snakemake.params.checkpoints),
        device="cuda" if snakemake.resources.gpu else "cpu",
        threads=snakemake.threads,
    )
