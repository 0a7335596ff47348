"""The training loop: one run from its spec to its record."""

import contextlib
import math
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from poet.methods.contract import count_trainable
from poet.system.progress import Progress, say
from poet.launch.allocator import keep_freed_memory
from poet.launch.checkpoints import CheckpointFolder
from poet.launch.clock import Clock, stopped
from poet.training.distribution import Processes, join
from poet.training.errors import RunError
from poet.launch.interrupts import StopRequest
from poet.launch.provenance import provenance
from poet.launch.records import weights_files, write_history, write_record
from poet.launch.sources import data_sources, file_digests, training_digest, training_sources
from poet.training.run import Run
from poet.training.spec import RunSpec
from poet.launch.status import Status


def train(
    spec: RunSpec,
    *,
    data: Path,
    folder: Path,
    checkpoints: Path,
    device: str | None = None,
    threads: int = 1,
    shard_optimizer: bool = False,
    checkpoint_seconds: float = 60.0,
) -> dict[str, Any]:
    """Train a run to its end, from its last checkpoint if there is one.

    If ``torchrun`` started several processes, each calls this function, and the first one writes the files.

    Writes ``history.csv``, ``probes.npz`` if the spec has probes, ``weights/`` if the spec keeps them and the run did not diverge, and
    ``record.json`` last; then removes the checkpoints. A loss or perplexity of a history row that is NaN or infinite ends the run: ``diverged``, with a perplexity of NaN.

    Args:
        spec: the run.
        data: folder of tokenized rows, as ``poet.data.prepare`` writes it.
        folder: the run's folder.
        checkpoints: the run's checkpoint folder; not inside ``folder``, which the pipeline empties.
        device: "cpu" or "cuda"; None takes a GPU if there is one.
        threads: CPU threads of this process.
        shard_optimizer: divide AdamW's state among the processes.
        checkpoint_seconds: least time between two checkpoints.

    Returns:
        The record.

    Raises:
        RunError: data and spec do not fit, a checkpoint or the weights cannot be written, the run is being trained already, there is
            no such device, or another process of the run was lost.
        DiskError: history, probes or the record cannot be written.
        SystemExit: SIGINT or SIGTERM came, or the end of the Slurm job is near; the state is saved and the next call goes
            on from it.
    """
    torch.set_num_threads(threads)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu":
        keep_freed_memory()
    if device == "cuda" and not torch.cuda.is_available():
        raise RunError(f"run {spec.name} wants a GPU and torch sees none: choose another scale, or install a CUDA build")
    code = {  # of the code that trains: it may be edited before the end
        "training_digest": training_digest(spec.method, device),
        "sources": file_digests([*training_sources(spec.method, device), *data_sources(spec.data["corpus"])]),
    }
    store = CheckpointFolder(checkpoints, spec.digest, code["training_digest"], say=lambda sentence: say(f"{spec.name}: {sentence}"))
    processes = join(device)
    made_by = provenance(device, processes.size)
    # From here to the record, a signal is only noted; the training loop stops for it after the current step.
    with contextlib.ExitStack() as writing, StopRequest() as stop, _lost_processes(spec, processes):
        status = Status(store.run_folder, spec.name, spec.digest, spec.steps, processes.size)
        if processes.first:
            writing.enter_context(store.claim())
            writing.enter_context(status)
        run = Run(spec, data, device, processes, shard_optimizer=shard_optimizer)
        _train(run, store, status, stop, checkpoint_seconds)
        record = _record(run, {**code, "provenance": made_by})
        if processes.first:
            _write(run, folder, record)
            store.remove()
    return record


@contextlib.contextmanager
def _lost_processes(spec: RunSpec, processes: Processes) -> Iterator[None]:
    """Turn the backends' errors about a lost process into a :class:`RunError`."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.distributed.DistError) or (processes.size > 1 and "gloo" in str(error).lower()):
            raise RunError(f"a process of run {spec.name} was lost: start again, and it goes on from the last checkpoint") from error
        raise


def _train(run: Run, store: CheckpointFolder, status: Status, stop: StopRequest, checkpoint_seconds: float) -> None:
    spec, processes = run.spec, run.processes
    # The first process finds the newest intact file and removes damaged ones; then every process reads that file.
    if (path := processes.broadcast(store.newest() if processes.first else None)) is not None:
        run.restore(store.load(path))
        if processes.first:
            say(f"{spec.name}: goes on from step {run.step}")
    shown = Progress(spec.name, spec.steps, "steps", done=run.step) if processes.first else contextlib.nullcontext()
    with shown as progress:
        clock = Clock(checkpoint_seconds, watch_job=processes.first)
        if processes.first:
            status.update(now=True, step=run.step, checkpoint_step=run.step)
        while run.step < spec.steps and not run.diverged:
            row = run.advance()
            if processes.first:
                progress.add(1, **({"loss": row["train_loss"], "ppl": row["validation_perplexity"]} if row else {}))
                status.update(step=run.step, **({"tokens_per_second": row["tokens_per_second"]} if row else {}))
            if run.diverged:
                break
            due, ending = processes.first and clock.due(last=run.step == spec.steps), clock.ending()
            # A signal may have reached only one process, and only the first knows if a save is due: all save, or none does.
            number, due = map(int, processes.maximum(stop.signal or ending, due))
            if number or due:
                with clock.saving():
                    if (state := run.state()) is not None:
                        store.save(state)
                        status.update(now=True, step=run.step, checkpoint_step=run.step)
                    processes.broadcast(None)  # wait for the file: the first process to exit would take the others with it
            if number:
                if processes.first:
                    say(stopped(spec.name, run.step, number, of_job=stop.signal is None and bool(ending)))
                raise SystemExit(128 + number)


def _record(run: Run, code: dict[str, Any]) -> dict[str, Any]:
    spec = run.spec
    final = run.final_perplexity()
    if run.device == "cuda":
        peak = torch.cuda.max_memory_allocated()
    else:
        unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes or in KiB
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {
        "status": "diverged" if math.isnan(final) else "completed",
        "name": spec.name,
        "spec": spec.to_dict(),
        "spec_digest": spec.digest,
        **code,
        "validation_perplexity": final,
        "steps": run.step,
        "tokens": run.tokens,
        "trainable_parameters": count_trainable(run.model),
        "total_parameters": run.total_parameters,
        "held": run.elements,
        "weights_sha256": run.weights_digest(),
        "data_sha256": run.batches.sha256,
        "validation_sha256": run.validation_rows.meta["splits"]["validation"]["sha256"],
        "cost": {
            "train_seconds": run.seconds,
            "probe_seconds": run.probes.seconds,
            "peak_memory_bytes": int(run.processes.maximum(peak)[0]),
            "tokens_per_second": spec.tokens / spec.steps * run.step / run.seconds if run.seconds else None,
        },
    }


def _write(run: Run, folder: Path, record: dict[str, Any]) -> None:
    record["history_sha256"] = write_history(folder / "history.csv", run.history)
    if run.spec.probes:
        record["probes_sha256"] = run.probes.write(folder / "probes.npz")
    else:
        (folder / "probes.npz").unlink(missing_ok=True)  # of an earlier spec of the same name
    shutil.rmtree(folder / "weights", ignore_errors=True)
    if run.spec.keep_weights and record["status"] == "completed":
        try:
            run.method.export(run.model).save_pretrained(folder / "weights")
        except (OSError, SafetensorError) as error:
            raise RunError(f"cannot write {folder / 'weights'} ({getattr(error, 'strerror', None) or error}): free some space and run again") from None
        record["weights_files"] = weights_files(folder / "weights")
    write_record(folder / "record.json", record)
