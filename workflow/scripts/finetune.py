"""Rules ``finetune_*``: the finetuning runs of one pretrained model, one after the other; or the pretraining of the small BART."""

from pathlib import Path

from job import job, logged

with job(snakemake):
    from poet.data.errors import DataError
    from poet.finetuning.loop import finetune
    from poet.finetuning.sources import finetuning_digest
    from poet.finetuning.spec import FinetuningSpec
    from poet.launch.devices import reserved_gpus
    from suite.recorded.restore import restored
    from suite.records import whole_record
    from suite.jobs import check_code, keep, take_back

    resume = snakemake.config.get("resume")  # not a param: Snakemake would train finished runs again if it changed
    base, rows = (next(map(Path, paths), None) for paths in (snakemake.input.base, snakemake.input.rows))
    if base:
        whole_record(base)  # refuse an edited record: it says which weights these runs start from
    if not rows and not (base and (base.parent / "weights" / "tokenizer_config.json").exists()):  # see rows_for in data.smk
        raise DataError(f"the prepared data are gone: call `snakemake --cores 1 data --config scale={snakemake.config['scale']}`, then call again")
    rows, device = rows and rows.parent, "cuda" if snakemake.resources.gpu else "cpu"
    given = (snakemake.params.spec, list(snakemake.input.tasks), snakemake.output.record, snakemake.params.checkpoints, list(snakemake.log))
    known = snakemake.params.code
    with reserved_gpus(snakemake.resources.gpu, snakemake.rule):
        for values, task, record, checkpoints, log in zip(*given, strict=True):
            spec, folder = FinetuningSpec.from_dict(values), Path(record).parent
            read = {"base": base, "data": Path(task).parent, "device": device}
            with logged(log):
                if take_back(spec, folder, known=known, **read) or (resume == "recorded" and restored(spec, folder, **read)):
                    continue
                check_code(known, finetuning_digest(spec, device))
                finetune(spec, **read, rows=rows, folder=folder, checkpoints=Path(checkpoints), threads=snakemake.threads)
                keep(spec, folder)
