"""Run records: ``record.json`` and ``history.csv``, and how a run's files, probes included, are read back."""

import contextlib
import csv
import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
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
    """Write a record as JSON. NaN and Infinity are written as such, which Python's JSON reads back.

    Args:
        path: of the file.
        record: gets ``record_sha256``, the digest of the rest.

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
    """A file of a run is not the one that was written when the run ended."""


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
    """Refuse a file of a run whose digest differs from the one in the run's record.

    Args:
        record: of the run.
        name: the file's name, such as ``history.csv``.
        content: of the file; None if there is no file.

    Raises:
        Altered: the digests differ, or either the file or its digest is missing.
    """
    found = None if content is None else hashlib.sha256(content).hexdigest()
    if record.get(f"{name.partition('.')[0]}_sha256") != found:
        raise Altered("is not the one that the record was written with")


def weights_files(folder: Path) -> dict[str, str]:
    """sha256 of each file in a folder of weights, by file name; a run that keeps weights has this in its record as ``weights_files``."""
    return {path.name: sha256_of(path) for path in sorted(folder.iterdir())}


def check_weights(record: dict[str, Any], folder: Path) -> None:
    """Refuse weights that differ from the ``weights_files`` of a record. Older records have no digests of weights: nothing is checked.

    Raises:
        RunError: a file is missing or differs.
    """
    for name, noted in record.get("weights_files", {}).items():
        if not (folder / name).is_file() or sha256_of(folder / name) != noted:
            raise RunError(f"{folder / name} is not the file that the record beside {folder} was written with: train that run again")


def again(record: Path, name: str) -> str:
    """The command that makes a run's files again. Its seed is the first in the name: a finetuning run's is that of its pretrained run."""
    seed = re.search(r"seed(\d+)", name)[1]
    return f"snakemake --cores 1 --force {record} --config scale={name.partition('/')[0]} 'seeds=[{seed}]'"


@contextlib.contextmanager
def reading(results: Path, spec: RunSpec, name: str) -> Iterator[Path]:
    """Give the path of a run's file, and turn errors of reading it into a :class:`RunError`.

    Args:
        results: the results folder.
        spec: the run.
        name: the file's name in the run's folder.

    Raises:
        RunError: the file is missing or unreadable; the message has the command that makes it again.
    """
    folder = results / "runs" / spec.name
    command = again(folder / "record.json", spec.name)
    what = name.partition(".")[0]
    try:
        yield folder / name
    except FileNotFoundError:
        raise RunError(f"run {spec.name} has no {what} ({folder / name}): make it with `{command}`") from None
    except Altered as error:
        raise RunError(f"the {what} of run {spec.name} ({folder / name}) {error}: make it again with `{command}`") from None
    except (ValueError, OSError, EOFError, TypeError, KeyError, zipfile.BadZipFile, zlib.error):
        raise RunError(f"the {what} of run {spec.name} ({folder / name}) cannot be read: make it again with `{command}`") from None


def read_record(results: Path, spec: RunSpec) -> dict[str, Any]:
    """The record of a run, checked against its spec and its own digest.

    Raises:
        RunError: missing, unreadable, edited, or of another spec; the message has the command that makes it again.
    """
    with reading(results, spec, "record.json") as path:
        record = json.loads(path.read_text())
        if record["spec_digest"] != spec.digest:
            raise RunError(f"the record of run {spec.name} is of another spec: make it again with `{again(path, spec.name)}`")
        check_record(record)
    return record


@contextlib.contextmanager
def _content(results: Path, spec: RunSpec, name: str) -> Iterator[bytes]:
    """The content of a run's file, checked against the digest in its record; see :func:`reading` for the errors."""
    record = read_record(results, spec)
    with reading(results, spec, name) as path:
        content = path.read_bytes()
        check_file(record, name, content)
        yield content


def read_run_history(results: Path, spec: RunSpec) -> list[dict[str, float | None]]:
    """The history of a run; see :func:`read_history`.

    Raises:
        RunError: missing, unreadable, or not that of the run's record; the sentence has the command that makes it again.
    """
    with _content(results, spec, "history.csv") as content:
        return read_history(content.decode())


def read_summaries(results: Path, spec: RunSpec) -> list[str]:
    """The summaries that a run wrote, in the order of its validation documents; none if it diverged.

    Raises:
        RunError: missing, unreadable, or not those of the run's record; the sentence has the command that makes them again.
    """
    with _content(results, spec, "summaries.jsonl") as content:
        return [json.loads(line)[0] for line in content.splitlines()]


def read_probes(results: Path, spec: RunSpec) -> dict[str, np.ndarray]:
    """What the probes of a run measured: ``<probe>/steps`` (s,) and ``<probe>/<layer>`` (s, ...).

    Raises:
        RunError: missing, unreadable, or not those of the run's record; the sentence has the command that makes it again.
    """
    with _content(results, spec, "probes.npz") as content:
        with np.load(io.BytesIO(content)) as archive:
            return {key: archive[key] for key in archive.files}
