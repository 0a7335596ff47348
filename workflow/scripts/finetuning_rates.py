"""Rules ``finetuning_rates_*``: the searches for the learning rates of one task and pretrained model."""

from pathlib import Path

from job import job, logged

with job(snakemake):
    import pandas as pd

    from poet.finetuning.loop import finetune
    from poet.finetuning.sources import finetuning_digest
    from poet.launch.devices import reserved_gpus
    from poet.launch.records import read_record
    from suite.collection import RESULTS
    from suite.finetuning import bases
    from suite.jobs import check_code
    from suite.recorded.restore import changed, restored
    from suite.records import whole_record
    from suite.scale import load_scale
    from suite.tuning.finetuning import tune

    whole_record(Path(snakemake.input.base))  # refuse an edited record: it says which weights the trials start from
    scale = load_scale({"scale": snakemake.params.scale, "seeds": snakemake.params.seeds})
    rows, device = Path(snakemake.input.rows).parent, "cuda" if snakemake.resources.gpu else "cpu"
    read = {"base": Path(snakemake.input.base), "data": Path(snakemake.input.task).parent, "device": device}
    resume = snakemake.config.get("resume")  # not a param: Snakemake would make finished searches again if it changed

    def run(spec):
        """A trial's record. The trial is trained only without a record of today's inputs and code (at a scale that retrains), so that a stopped search goes on."""
        folder = RESULTS / "runs" / spec.name
        record = whole_record(folder / "record.json")  # refuses an edited one
        if record is not None and record["spec_digest"] == spec.digest and not changed(spec, record, **read, code=bool(snakemake.params.code)):
            return record
        with logged(RESULTS / "logs" / "runs" / f"{spec.name}.log"):
            if resume == "recorded" and restored(spec, folder, **read):
                return read_record(RESULTS, spec)
            check_code(snakemake.params.code, finetuning_digest(spec, device))
            return finetune(spec, **read, rows=rows, folder=folder, checkpoints=RESULTS / "checkpoints" / spec.name, threads=snakemake.threads)

    (base,) = (spec for spec in bases(scale) if spec.name == snakemake.params.base)
    with reserved_gpus(snakemake.resources.gpu, snakemake.rule):
        pd.DataFrame(tune(scale, base, snakemake.params.task, run)).to_csv(snakemake.output[0], index=False, lineterminator="\n")
