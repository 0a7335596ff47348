"""Rules ``train_*``: one run, or one after the other where a scale's runs share a process."""

from pathlib import Path

from job import job, logged


def several(value):
    """What a rule gives for one run or for several, as a list."""
    return [value] if isinstance(value, (dict, str)) else list(value)


with job(snakemake):
    from poet.training.loop import train
    from poet.training.spec import RunSpec

    given = (snakemake.params.get("spec"), snakemake.output.record, snakemake.params.checkpoints, list(snakemake.log))
    for spec, record, checkpoints, log in zip(*map(several, given), strict=True):
        with logged(log):
            train(
                RunSpec.from_dict(spec),
                data=Path(snakemake.input[0]).parent,
                folder=Path(record).parent,
                checkpoints=Path(checkpoints),
                device="cuda" if snakemake.resources.gpu else "cpu",
                threads=snakemake.threads,
            )
