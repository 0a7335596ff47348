"""Unpacking a recorded run, and whether it can take the place of training."""

from __future__ import annotations

import json
from pathlib import Path

from poet.system.files import atomic_path
from poet.system.progress import say
from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.recorded.archive import archive_path, read
from suite.recorded.origin import code_changed, write_note
from suite.recorded.run import FILES, RecordedRun


def unpack(run: RecordedRun, folder: Path) -> None:
    """Write a run's files byte for byte, its record last, with a note that it was not trained here.

    Raises:
        DiskError: the disk is full or the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "record.json").unlink(missing_ok=True)
    write_note(folder, run.origin, run.record)
    for file in reversed(FILES):
        if file in run.files:
            with atomic_path(folder / file) as temporary:
                temporary.write_bytes(run.files[file])
        else:
            (folder / file).unlink(missing_ok=True)


def why_not(run: RecordedRun, spec: RunSpec, device: str, splits: dict[str, dict]) -> str:
    """Why a recorded run cannot take the place of training a spec; empty if it can.

    Args:
        run: recorded under the spec's name.
        spec: what is asked for today.
        device: "cpu" or "cuda", where it would be trained.
        splits: of the prepared data, as their meta.json describes them.
    """
    if spec.keep_weights:
        return "its weights are asked for, and archives have none"
    changed = ["spec"] if run.spec.digest != spec.digest else []
    if run.device != device:
        changed.append(f"device ({run.device} then, {device} now)")
    elif code_changed(spec, run.record, device):
        changed.append("training code")
    validation = splits["validation"]["sha256"]
    # Records of 2026-11-22 and before do not say which validation rows they were measured on.
    if (run.record["data_sha256"], run.record.get("validation_sha256", validation)) != (splits["train"]["sha256"], validation):
        changed.append("prepared data")
    return f"not as recorded: {', '.join(changed)}" if changed else ""


def restored(spec: RunSpec, folder: Path, data: Path, device: str, archive: Path | None = None) -> bool:
    """Restore a run instead of training it if its recording is of today's spec, training code and rows; the log says which it was.

    Args:
        spec: the run.
        folder: the run's folder.
        data: folder of the prepared data.
        device: "cpu" or "cuda", where it would be trained.
        archive: of the recorded runs; None takes the scale's.

    Raises:
        RecordedError: the archive is missing or damaged.
        DiskError: a file cannot be written.
    """
    archive = archive or archive_path(spec.scale)
    run = read(archive, only=spec.name).get(spec.name)
    splits = json.loads((data / "meta.json").read_text())["splits"]
    why = "it is not among the recorded runs" if run is None else why_not(run, spec, device, splits)
    if why:
        say(f"{spec.name}: trained, and not taken from {archive.name}: {why}")
        return False
    _take(run, folder, archive)
    return True


def restored_finetuning(spec: FinetuningSpec, folder: Path, data: Path, base: Path | None, device: str, archive: Path | None = None) -> bool:
    """As :func:`restored`, if the examples and the record of the pretrained run are the recorded ones, too.

    Args:
        spec, folder, device, archive: as there.
        data: folder of the examples.
        base: record of the pretrained run; None where there is no such run.
    """
    archive = archive or archive_path(spec.scale)
    run = read(archive, only=spec.name).get(spec.name)
    if run is None:
        why = "it is not among the recorded runs"
    elif base is None:
        why = "its weights are asked for, and archives have none"
    else:
        splits, now = json.loads((data / "meta.json").read_text())["splits"], json.loads(base.read_text())
        found = [run.record[key] for key in ("train_sha256", "validation_sha256", "base_weights_sha256")]
        same = {
            "spec": run.spec.digest == spec.digest,
            f"device ({run.device} then, {device} now)": run.device == device,
            "training code": not code_changed(spec, run.record, device),
            "examples": found[:2] == [splits["train"]["sha256"], splits["validation"]["sha256"]],
            "pretrained weights": found[2] == now["weights_sha256"],
        }
        changed = [what for what, equal in same.items() if not equal]
        why = f"not as recorded: {', '.join(changed)}" if changed else ""
    if why:
        say(f"{spec.name}: trained, and not taken from {archive.name}: {why}")
        return False
    _take(run, folder, archive)
    return True


def _take(run: RecordedRun, folder: Path, archive: Path) -> None:
    unpack(run, folder)
    where = run.record["provenance"]
    foreign = f", foreign, from {run.origin}" if run.origin else ""
    say(f"{run.name}: restored from {archive.name}{foreign}: recorded on {where['machine']['cpu']} by commit {where['commit']}")
