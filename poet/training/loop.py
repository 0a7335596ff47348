"""The training loop: one run from its spec to its record."""

from __future__ import annotations

import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

import torch

from poet.methods.contract import count_trainable
from poet.progress import Progress, say
from poet.training.checkpoints import CheckpointFolder
from poet.training.errors import RunError
from poet.training.interrupts import StopRequest
from poet.training.provenance import provenance
from poet.training.records import write_history, write_record
from poet.training.run import Run
from poet.training.spec import RunSpec


def train(
    spec: RunSpec,
    *,
    data: Path,
    folder: Path,
    checkpoints: Path,
    device: str | None = None,
    threads: int = 1,
    checkpoint_seconds: float = 60.0,
) -> dict[str, Any]:
    """Train a run to its end, from its last checkpoint if there is one.

    Writes ``history.csv``, ``probes.npz`` if the spec has probes, then ``weights/`` if the spec keeps them, then ``record.json``, then removes the
    checkpoints. A loss that is NaN or infinite ends the run as ``diverged``, with the NaN in its record.

    Args:
        spec: the run.
        data: folder of tokenized rows, as ``poet.data.prepare`` writes it.
        folder: the run's folder.
        checkpoints: the run's checkpoint folder; not inside ``folder``, which the pipeline empties.
        device: "cpu" or "cuda"; None takes a GPU if there is one.
        threads: CPU threads.
        checkpoint_seconds: least time between two checkpoints.

    Returns:
        The record.

    Raises:
        RunError: data and spec do not fit, a file cannot be written, the run is being trained already, or there is no
            such device.
        SystemExit: SIGINT or SIGTERM came; the state is saved and the next call goes on from it.
    """
    torch.set_num_threads(threads)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise RunError(f"run {spec.name} wants a GPU and torch sees none: choose another scale, or install a CUDA build")
    store = CheckpointFolder(checkpoints, spec.digest, say=lambda sentence: say(f"{spec.name}: {sentence}"))
    with store.claim():
        run = Run(spec, data, device)
        _train(run, store, checkpoint_seconds)
        record = _record(run)
        _write(run, folder, record)
        store.remove()
    return record


def _train(run: Run, store: CheckpointFolder, checkpoint_seconds: float) -> None:
    spec = run.spec
    if (state := store.load()) is not None:
        run.restore(state)
        say(f"{spec.name}: goes on from step {run.step}")
    with StopRequest() as stop, Progress(spec.name, spec.steps, "steps", done=run.step) as progress:
        saved_at, cost = time.monotonic(), 0.0
        while run.step < spec.steps and not run.diverged:
            row = run.advance()
            progress.add(1, **({"loss": row["train_loss"], "ppl": row["validation_perplexity"]} if row else {}))
            if run.diverged:
                break
            if stop.signal is not None or time.monotonic() - saved_at >= max(checkpoint_seconds, 20 * cost):
                started = time.monotonic()
                store.save(run.state())
                saved_at = time.monotonic()
                cost = saved_at - started  # a large model takes long to save: at most 5% of the time goes there
            if stop.signal is not None:
                say(f"{spec.name}: stopped by signal {stop.signal} after step {run.step}: saved, the next call goes on")
                raise SystemExit(128 + stop.signal)


def _record(run: Run) -> dict[str, Any]:
    spec = run.spec
    # Over more rows than the history's: a curve is over one set of rows from its first point to its last.
    final = math.nan if run.diverged else run.evaluate(spec.final_evaluation_rows)
    final = final if math.isfinite(final) else math.nan
    if run.device == "cuda":
        peak = torch.cuda.max_memory_allocated()
    else:
        unit = 1 if sys.platform == "darwin" else 1024  # getrusage's own
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {
        "status": "diverged" if math.isnan(final) else "completed",
        "name": spec.name,
        "spec": spec.to_dict(),
        "spec_digest": spec.digest,
        "validation_perplexity": final,
        "steps": run.step,
        "tokens": run.tokens,
        "trainable_parameters": count_trainable(run.model),
        "total_parameters": run.total_parameters,
        "held": run.held,
        "weights_sha256": run.weights_digest(),
        "data_sha256": run.train_rows.sha256,
        "cost": {
            "train_seconds": run.seconds,
            "probe_seconds": run.probes.seconds,
            "peak_memory_bytes": peak,
            "tokens_per_second": spec.tokens / spec.steps * run.step / run.seconds if run.seconds else None,
        },
        "provenance": provenance(run.device),
    }


def _write(run: Run, folder: Path, record: dict[str, Any]) -> None:
    write_history(folder / "history.csv", run.history)
    if run.spec.probes:
        record["probes_sha256"] = run.probes.write(folder / "probes.npz")
    if run.spec.keep_weights and record["status"] == "completed":
        try:
            run.method.export(run.model).save_pretrained(folder / "weights")
        except OSError as error:
            raise RunError(f"cannot write {folder / 'weights'} ({error.strerror}): free some space and run again") from None
    write_record(folder / "record.json", record)
