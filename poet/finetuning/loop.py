"""The finetuning loop: one run from its spec to its record."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import torch

from poet.data.files import read_json, sha256_of
from poet.data.rows import read_meta
from poet.finetuning.run import FinetuningRun
from poet.finetuning.sources import finetuning_digest, finetuning_files
from poet.finetuning.spec import FinetuningSpec
from poet.launch.allocator import keep_freed_memory
from poet.launch.checkpoints import CheckpointFolder
from poet.launch.clock import Clock, stopped
from poet.launch.interrupts import StopRequest
from poet.launch.provenance import provenance
from poet.launch.records import check_weights, weights_files, write_record
from poet.launch.status import Status
from poet.system.progress import Progress, say
from poet.training.errors import RunError


def finetune(
    spec: FinetuningSpec,
    *,
    base: Path | None,
    data: Path,
    rows: Path | None,
    folder: Path,
    checkpoints: Path,
    device: str = "cpu",
    threads: int = 1,
    checkpoint_seconds: float = 60.0,
) -> dict[str, Any]:
    """Finetune to the end, from the last checkpoint if there is one, and write ``record.json``.

    A loss, or the metric of an epoch, that is NaN or infinite ends the run as ``diverged``, with NaN as its metric.

    Args:
        spec, data, rows, device: see :class:`poet.finetuning.run.FinetuningRun`.
        base: record of the pretrained run, with its weights beside it; None if there is no such run.
        folder: the run's folder.
        checkpoints: the run's checkpoint folder, not inside ``folder``.
        threads: CPU threads of this process.
        checkpoint_seconds: least time between two checkpoints.

    Returns:
        The record.

    Raises:
        RunError: a file is missing or differs from its description or from the pretrained run's record, the method refuses the model, or
            the run is being trained already.
        SystemExit: SIGINT or SIGTERM came, or the end of the Slurm job is near; the state is saved and the next call goes on from it.
    """
    torch.set_num_threads(threads)
    if device == "cpu":
        keep_freed_memory()
    code = {"training_digest": finetuning_digest(spec, device), "sources": finetuning_files(spec, device)}  # taken before training
    made_by, begun = provenance(device), json.loads(base.read_text()) if base else {}
    if begun.get("status") == "diverged":
        raise RunError(f"run {spec.name} starts from {spec.base}, which diverged: choose other learning rates for that run")
    if base:
        check_weights(begun, base.parent / "weights")
    if spec.base:
        _check_examples(data)
    if base and rows:
        _check_rows(spec, begun, rows)
    # A base that was trained again under its old spec may have other weights, and the validation examples may be made anew: a checkpoint
    # that began with the old ones is not resumed. It says itself which examples it was trained on.
    measured = (read_json(data / "meta.json") or {}).get("splits", {}).get("validation", {}).get("sha256")
    start = hashlib.sha256(f"{code['training_digest']} {begun.get('weights_sha256')} {measured}".encode()).hexdigest()
    store = CheckpointFolder(checkpoints, spec.digest, start, say=lambda sentence: say(f"{spec.name}: {sentence}"))
    with StopRequest() as stop, store.claim():
        with Status(store.run_folder, spec.name, spec.digest, steps=0, devices=1) as status:
            run = FinetuningRun(spec, base.parent / "weights" if base else None, data, rows, device)
            status.update(steps=run.steps)
            clock = Clock(checkpoint_seconds)
            _train(run, store, status, stop, clock)
            found = run.finish(folder, lambda: _end_if(stop.signal or clock.ending(), run, stop))
        record = _record(run, {**code, "provenance": made_by}, found, begun)
        if (folder / "weights").is_dir():
            record["weights_files"] = weights_files(folder / "weights")
        write_record(folder / "record.json", record)
        store.remove()
    return record


def _check_examples(folder: Path) -> None:
    """Refuse a prepared task whose files were changed: the record describes the examples as ``meta.json`` does."""
    for split in (read_json(folder / "meta.json") or {"splits": {}})["splits"].values():
        path = folder / split["file"]
        if path.exists() and sha256_of(path) != split["sha256"]:
            raise RunError(f"{path} is not the file that meta.json beside it describes: delete {folder} and run again")


def _check_rows(spec: FinetuningSpec, base: dict[str, Any], rows: Path) -> None:
    """Refuse prepared rows that the pretrained run did not train on: their tokenizer may be another, and its tokens mean nothing to the weights."""
    if read_meta(rows)["splits"]["train"]["sha256"] != base.get("data_sha256", base.get("train_sha256")):
        raise RunError(f"{rows} is not the data that {spec.base} was pretrained on: delete that run's folder in results/runs and run again")


def _train(run: FinetuningRun, store: CheckpointFolder, status: Status, stop: StopRequest, clock: Clock) -> None:
    if (state := store.load()) is not None:
        run.restore(state)
        status.update(now=True, step=run.step, checkpoint_step=run.step)
        say(f"{run.spec.name}: goes on from step {run.step}")
    with Progress(run.spec.name, run.steps, "steps", done=run.step) as progress:
        while run.step < run.steps and not run.diverged:
            run.advance()
            progress.add(1, metric=run.history[-1]["metric"] if run.history else None)
            status.update(step=run.step)
            number = stop.signal or clock.ending()  # read once: a later signal is handled after the next step
            if number or clock.due(last=False):
                with clock.saving():
                    _save(run, store, status)
            _end_if(number, run, stop)
    if not run.diverged:
        _save(run, store, status)  # the end of the run may take long


def _save(run: FinetuningRun, store: CheckpointFolder, status: Status) -> None:
    store.save(run.state())
    status.update(now=True, step=run.step, checkpoint_step=run.step)


def _end_if(number: int, run: FinetuningRun, stop: StopRequest) -> None:
    if number:
        say(stopped(run.spec.name, run.step, number, of_job=stop.signal is None))
        raise SystemExit(128 + number)


def _record(run: FinetuningRun, code: dict[str, Any], found: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    spec = run.spec
    return {
        "status": "diverged" if run.diverged else "completed",
        "name": spec.name,
        "spec": spec.to_dict(),
        "spec_digest": spec.digest,
        **code,
        "metric": math.nan if run.diverged else run.history[-1]["metric"],
        **found,
        "epochs": run.history,
        "steps": run.step,
        "trainable_parameters": run.trainable,
        "examples": {"train": len(run.train), "validation": len(run.validation)},
        "base_weights_sha256": base.get("weights_sha256"),
        "train_sha256": run.train.sha256,
        "validation_sha256": run.validation.sha256,
        "cost": {"train_seconds": run.seconds},
    }
