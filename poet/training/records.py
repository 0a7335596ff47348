"""Run records: ``record.json`` and ``history.csv``."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

from poet.training.errors import RunError
from poet.training.spec import RunSpec

#: Columns of ``history.csv``. Empty cells: not measured at that step.
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


def write_atomically(path: Path, text: str) -> None:
    """Write a text file beside its name, then rename: a reader never sees half of it.

    Raises:
        RunError: the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(path.name + ".writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunError(f"cannot write {path} ({error.strerror}): free some space or check its permissions") from None


def write_history(path: Path, history: list[dict[str, Any]]) -> None:
    """History rows as CSV, numbers in full precision."""
    lines = [",".join(HISTORY_COLUMNS)]
    lines += [",".join("" if row.get(c) is None else repr(row[c]) for c in HISTORY_COLUMNS) for row in history]
    write_atomically(path, "\n".join(lines) + "\n")


def read_history(path: Path) -> list[dict[str, float | None]]:
    """The rows of ``history.csv``; NaN stays NaN, an empty cell is None."""
    with open(path, newline="") as file:
        return [{k: float(v) if v else None for k, v in row.items()} for row in csv.DictReader(file)]


def write_record(path: Path, record: dict[str, Any]) -> None:
    """A record as JSON. NaN and Infinity are written as such (Python's JSON reads them back)."""
    write_atomically(path, json.dumps(record, indent=1) + "\n")


def read_record(results: Path, spec: RunSpec) -> dict[str, Any]:
    """The record of a run, checked against the spec that is asked for.

    Args:
        results: the results folder.
        spec: the run that an artifact asks for.

    Raises:
        RunError: missing, unreadable, or of another spec; the sentence has the command that makes it again.
    """
    path = results / "runs" / spec.name / "record.json"
    again = f"snakemake --cores 1 --force {path} --config scale={spec.scale} 'seeds=[{spec.seed}]'"
    try:
        record = json.loads(path.read_text())
        digest = record["spec_digest"]
    except FileNotFoundError:
        raise RunError(f"run {spec.name} has no record ({path}): make it with `{again}`") from None
    except (ValueError, OSError, TypeError, KeyError):
        raise RunError(f"the record of run {spec.name} ({path}) cannot be read: make it again with `{again}`") from None
    if digest != spec.digest:
        raise RunError(f"the record of run {spec.name} is of another spec: make it again with `{again}`")
    return record
