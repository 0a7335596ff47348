"""Run records: ``record.json`` and ``history.csv``, and how a run's files, probes included, are read back."""

import csv
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from poet.data.files import sha256_of
from poet.system.files import write_text
from poet.training.errors import RunError
from poet.training.spec import RunSpec

#: Columns of ``history.csv``. An empty cell was not measured at that step.
HISTORY_COLUMNS = (
    "step",
    "tokens",
    "train_loss",
    "validation_perplexity",
    "lr_factor",
    "gradient_norm",
    "clip_norm",
    "tokens_per_second",
)


def write_history(path: Path, history: list[dict[str, Any]]) -> str:
    """History rows as CSV, numbers in full precision.

    Returns:
        sha256 of the file, which the record keeps.
    """
    lines = [",".join(HISTORY_COLUMNS)]
    lines += [",".join("" if row.get(c) is None else repr(row[c]) for c in HISTORY_COLUMNS) for row in history]
    text = "\n".join(lines) + "\n"
    write_text(path, text)
    return hashlib.sha256(text.encode()).hexdigest()


def read_history(text: str) -> list[dict[str, float | None]]:
    """The rows of the text of a ``history.csv``; NaN stays NaN, an empty cell is None."""
    return [{k: float(v) if v else None for k, v in row.items()} for row in csv.DictReader(text.splitlines())]


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record, with ``record_sha256`` added, as JSON. NaN and Infinity are written as such, which Python's JSON reads back.

    Raises:
        DiskError: the file cannot be written.
    """
    record["record_sha256"] = record_digest(record)
    write_text(path, json.dumps(record, indent=1) + "\n")


def record_digest(record: dict[str, Any]) -> str:
    """sha256 of a record without its ``record_sha256``, where this digest is kept: it shows whether the record was edited."""
    said = {key: value for key, value in record.items() if key != "record_sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Altered(ValueError):
    """A file of a run is not the one that was written when the run ended, or the record is that of another spec."""


def check_record(record: dict[str, Any]) -> None:
    """Refuse a record whose ``record_sha256`` is missing or wrong.

    Raises:
        Altered: the record was edited, or has no digest.
    """
    if not isinstance(record, dict) or "record_sha256" not in record:
        raise Altered("has no digest of its own")
    if record["record_sha256"] != record_digest(record):
        raise Altered("was edited after it was written")


def check_file(record: dict[str, Any], name: str, content: bytes | None) -> None:
    """Refuse the content of a run's file (None: there is no file) whose digest differs from the one in the run's record.

    Raises:
        Altered: the digests differ, or either the file or its digest is missing.
    """
    found = None if content is None else hashlib.sha256(content).hexdigest()
    if record.get(f"{name.partition('.')[0]}_sha256") != found:
        raise Altered("is not the one that the record was written with")


def weights_files(folder: Path) -> dict[str, str]:
    """sha256 of each file in a folder of weights, by file name; a run that keeps weights has this in its record as ``weights_files``."""
    return {path.name: sha256_of(path) for path in sorted(folder.iterdir())}


def altered_weights(record: dict[str, Any], folder: Path) -> Path | None:
    """The first file of weights that is missing or differs from a record's ``weights_files``; None if none does. Older records have no digests of weights."""
    noted = record.get("weights_files", {}).items()
    return next((folder / name for name, digest in noted if not (folder / name).is_file() or sha256_of(folder / name) != digest), None)


def check_weights(record: dict[str, Any], folder: Path) -> None:
    """Refuse :func:`altered_weights`.

    Raises:
        RunError: a file is missing or differs.
    """
    if altered := altered_weights(record, folder):
        raise RunError(f"{altered} is not the file that the record beside {folder} was written with: train that run again")


def again(record: Path, name: str) -> str:
    """The command that makes a run's files again. Its seed is the first in the name: a finetuning run's is that of its pretrained run."""
    seed = re.search(r"seed(\d+)", name)[1]
    return f"snakemake --cores 1 --force {record} --config scale={name.partition('/')[0]} 'seeds=[{seed}]'"


def _refusal(path: Path, spec: RunSpec, error: Exception) -> RunError:
    """What is wrong with a run's file, by the error of reading it, and the command that makes the file again."""
    command, what = again(path.with_name("record.json"), spec.name), path.stem
    if isinstance(error, FileNotFoundError):
        return RunError(f"run {spec.name} has no {what} ({path}): make it with `{command}`")
    why = error if isinstance(error, Altered) else "cannot be read"
    return RunError(f"the {what} of run {spec.name} ({path}) {why}: make it again with `{command}`")


def read_record(results: Path, spec: RunSpec) -> dict[str, Any]:
    """The record of a run, checked against its spec and its own digest.

    Raises:
        RunError: missing, unreadable, edited, or of another spec; the message has the command that makes it again.
    """
    path = results / "runs" / spec.name / "record.json"
    try:
        record = json.loads(path.read_text())
        check_record(record)
        if record.get("spec_digest") != spec.digest:
            raise Altered("is of another spec")
    except (OSError, ValueError) as error:
        raise _refusal(path, spec, error) from None
    return record


def read_file(results: Path, spec: RunSpec, name: str) -> bytes:
    """The content of a file in a run's folder, such as ``history.csv``, as it was written when the run ended.

    Raises:
        RunError: the file is missing or unreadable, or differs from its digest in the record; or the record does, see :func:`read_record`.
            The message has the command that makes it again.
    """
    record, path = read_record(results, spec), results / "runs" / spec.name / name
    try:
        content = path.read_bytes()
        check_file(record, name, content)
    except (OSError, Altered) as error:
        raise _refusal(path, spec, error) from None
    return content


def read_probes(results: Path, spec: RunSpec) -> dict[str, np.ndarray]:
    """What the probes of a run measured: ``<probe>/steps`` (s,) and ``<probe>/<layer>`` (s, ...). :func:`read_file` has the errors."""
    with np.load(io.BytesIO(read_file(results, spec, "probes.npz"))) as archive:
        return {key: archive[key] for key in archive.files}
