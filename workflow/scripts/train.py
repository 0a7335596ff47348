"""Rules ``train_*``: one run, or several one after the other if a scale's runs share a job."""

from pathlib import Path

from job import job, logged


def several(value):
    """A rule's value for one run or its values for several, as a list."""
    return [value] if isinstance(value, (dict, str)) else list(value)


with job(snakemake):
    from poet.data.errors import DataError
    from poet.launch.devices import reserved_gpus
    from poet.launch.sources import training_digest
    from poet.launch.start import launch
    from poet.training.spec import RunSpec
    from suite.recorded.restore import restored
    from suite.jobs import check_code, keep, take_back

    if not snakemake.input:  # see rows_for in data.smk
        raise DataError(f"the prepared data are gone: call `snakemake --cores 1 data --config scale={snakemake.config['scale']}`, then call again")
    resume = snakemake.config.get("resume")  # not a param: Snakemake would train finished runs again if it changed
    asked = snakemake.resources
    given = (snakemake.params.get("spec"), snakemake.output.record, snakemake.params.checkpoints, list(snakemake.log))
    known = snakemake.params.code
    for spec, record, checkpoints, log in zip(*map(several, given), strict=True):
        spec = RunSpec.from_dict(spec)
        paths = {"data": Path(snakemake.input[0]).parent, "folder": Path(record).parent}
        device, first_seed = "cuda" if asked.gpu else "cpu", spec.seed == snakemake.config["seeds"][0]
        with logged(log):
            if take_back(spec, known=known, device=device, **paths) or (resume == "recorded" and restored(spec, device=device, first_seed=first_seed, **paths)):
                continue
            check_code(known, training_digest(spec.method, device))
            with reserved_gpus(asked.gpu if asked.get("nodes", 1) == 1 else 0, spec.name):  # on several nodes Slurm assigns them
                launch(
                    spec,
                    **paths,
                    checkpoints=Path(checkpoints),
                    device=device,
                    threads=snakemake.threads,
                    processes=asked.gpu or asked.processes,
                    nodes=asked.get("nodes", 1),
                    shard_optimizer=bool(asked.shard_optimizer),
                )
            keep(spec, paths["folder"])
