"""Restoring a recorded run instead of training it, if it is still up to date."""

import shutil
from pathlib import Path
from typing import Any

from poet.data.rows import read_meta
from poet.finetuning.spec import FinetuningSpec
from poet.system.files import atomic_path
from poet.system.progress import say
from poet.training.spec import RunSpec
from suite.recorded.archive import archive_path, read
from suite.recorded.origin import write_note
from suite.recorded.run import FILES, RecordedRun, device_of
from suite.records import changed_code, whole_record


def unpack(run: RecordedRun, folder: Path) -> None:
    """Write a run's files byte for byte, its record last, with a note that it was not trained here.

    Files of an earlier training are removed with its weights.

    Raises:
        DiskError: the disk is full or the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "record.json").unlink(missing_ok=True)
    shutil.rmtree(folder / "weights", ignore_errors=True)  # of an earlier training: archives have none
    write_note(folder, run.origin, run.record)
    for file in reversed(FILES):
        if file in run.files:
            with atomic_path(folder / file) as temporary:
                temporary.write_bytes(run.files[file])
        else:
            (folder / file).unlink(missing_ok=True)


def restored(
    spec: RunSpec | FinetuningSpec, folder: Path, data: Path, device: str, archive: Path | None = None, base: Path | None = None,
    first_seed: bool = True,
) -> bool:
    """Restore a run if it was recorded with today's spec, device, training code and inputs. Returns whether it was restored; the log says why not.

    ``first_seed``: whether the run has the seed that finetuning starts from; weights of other seeds are not used. :func:`changed` has the rest.

    Raises:
        RecordedError: the archive is missing or damaged.
        DiskError: a file cannot be written.
    """
    archive = archive or archive_path(spec.scale)
    run = read(archive, only=spec.name).get(spec.name)
    why = "it is not among the recorded runs" if run is None else _why_not(run, spec, device, data, base, first_seed)
    if why:
        say(f"{spec.name}: trained, and not taken from {archive.name}: {why}")
        return False
    unpack(run, folder)
    where = run.record["provenance"]
    foreign = f", foreign, from {run.origin}" if run.origin else ""
    say(f"{run.name}: restored from {archive.name}{foreign}: recorded on {where['machine']['cpu']} by commit {where['commit']}")
    return True


def _why_not(run: RecordedRun, spec: RunSpec | FinetuningSpec, device: str, data: Path, base: Path | None, first_seed: bool) -> str:
    """Why a recorded run of the spec's name cannot be restored; empty if it can."""
    if base is None if isinstance(spec, FinetuningSpec) else spec.keep_weights and first_seed:
        return "its weights are asked for, and archives have none"
    found = [*(["spec"] if run.spec.digest != spec.digest else []), *changed(spec, run.record, device, data, base)]
    return f"not as recorded: {', '.join(found)}" if found else ""


def changed(
    spec: RunSpec | FinetuningSpec, record: dict[str, Any], device: str, data: Path, base: Path | None, code: bool = True
) -> list[str]:
    """What would differ if a recorded run were trained today: device ("cpu" or "cuda"), code, data, pretrained weights.

    ``data`` is the folder of the prepared data, or of a finetuning run's prepared task. ``base`` is the record of the run that it finetunes, if it
    finetunes one.

    Raises:
        RunError: the pretrained run's record was edited.
    """
    finetuning, found = isinstance(spec, FinetuningSpec), []
    if (then := device_of(record)) != device:
        found.append(f"device ({then} then, {device} now)")
    elif code and (other := changed_code(spec, record, device)):
        found.append(other)
    train, validation = (read_meta(data)["splits"][split]["sha256"] for split in ("train", "validation"))
    if (record["train_sha256" if finetuning else "data_sha256"], record["validation_sha256"]) != (train, validation):
        found.append("examples" if finetuning else "prepared data")
    if finetuning and record["base_weights_sha256"] != ((base and whole_record(base)) or {}).get("weights_sha256"):
        found.append("pretrained weights")
    return found
