"""Comparing results table by table: fresh against recorded ones, or any two folders or tables."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from poet.system.errors import UserError
from suite.check.findings import ANOTHER_SCALE, Finding, findings
from suite.check.tables import Line, Pair, checked, pairs, read
from suite.discovery import discover
from suite.scale import ROOT
from suite.wording import listed


def recorded_folder(scale: str) -> Path:
    """The folder with the recorded tables of a scale.

    Raises:
        UserError: no table is recorded at this scale.
    """
    folder = ROOT / "analyses" / "recorded" / scale
    if not any(folder.glob("*.csv")):
        raise UserError(
            f"nothing is recorded at scale {scale}: make its results, look them over, and keep them with "
            f"`make record SCALE={scale}`"
        )
    return folder


def compare(recorded: Path, results: Path, tables: Iterable[str]) -> list[Finding]:
    """Every number of the tables of these file names, those in ``results`` against those in ``recorded``."""
    found: list[Pair] = []
    for name in tables:
        old, new = recorded / name, results / name
        found += pairs(Path(name).stem, read(old) if old.exists() else [], read(new) if new.exists() else [])
    return findings(found)


def side_by_side(recorded: Path, fresh: Path) -> tuple[list[Finding], list[str]]:
    """Every number of two folders of tables, or of two tables, and sentences on what is not compared. The tolerances come from the recorded numbers.

    Raises:
        UserError: a path does not exist, is no table of the suite, or has no table or number in common with the other.
    """
    for path in (recorded, fresh):
        if not path.exists():
            raise UserError(f"{path} is not there: name two results folders, such as results/mini, or two tables")
    if recorded.is_dir() != fresh.is_dir():
        raise UserError(f"one of {recorded} and {fresh} is a folder, the other a table: name two folders, or two tables")
    notes, files = [], [(recorded, fresh)]
    if recorded.is_dir():
        there = {folder: _tables(folder) for folder in (recorded, fresh)}
        files = [(recorded / name, fresh / name) for name in there[recorded] if name in there[fresh]]
        for folder, other in ((recorded, fresh), (fresh, recorded)):
            if alone := [Path(name).stem for name in there[folder] if name not in there[other]]:
                notes.append(f"only in {folder}: {listed(alone, 5)}")
        if not files:
            raise UserError(f"{recorded} and {fresh} have no table in common: make the same target at both")
    within, across = [], []
    for old, new in files:
        one, other = _read(old), _read(new)
        scales = _scales(one), _scales(other)
        for pair in pairs(old.stem, one, other):
            (across if scales[0] != scales[1] and not _same_scale(pair) else within).append(pair)
        if scales[0] != scales[1]:
            named = (" and ".join(sorted(found)) or "none" for found in scales)
            notes.append(f"{old.stem} is of scale {' and of scale '.join(named)}: no tolerance holds between them")
    found = findings(within) + _unjudged(across)
    if all(one.kind == "row" for one in found):
        raise UserError(f"{recorded} and {fresh} have no number in common: make the same target at both, at one scale")
    return found, notes


def _tables(folder: Path) -> list[str]:
    """File names of the artifacts' tables that a folder has.

    Raises:
        UserError: the folder has no such table.
    """
    outputs = (output for artifact in discover().values() for output in artifact.outputs)
    found = [name for name in outputs if name.endswith(".csv") and (folder / name).is_file()]
    if not found:
        raise UserError(f"{folder} has no tables: name a folder such as results/mini or analyses/recorded/mini")
    return found


def _read(path: Path) -> list[Line]:
    try:
        return checked(read(path))
    except (ValueError, OSError, csv.Error) as error:
        raise UserError(f"{path} cannot be read as a table of the suite ({error}): make it again") from None


def _scales(lines: Sequence[Line]) -> set[str]:
    """The scales of a table's trained numbers, without "any" (formulas) and "paper" (quoted numbers)."""
    return {line["scale"] for line in lines if line.get("scale") not in (None, "", "any", "paper")}


def _same_scale(pair: Pair) -> bool:
    return bool(pair.recorded and pair.fresh) and pair.recorded.get("scale") == pair.fresh.get("scale")


def _unjudged(across: Sequence[Pair]) -> list[Finding]:
    """Findings on the numbers that tables of two scales share: equal, or not judged, as no tolerance holds between scales."""
    both = findings([pair for pair in across if pair.recorded and pair.fresh])
    numbers = [replace(one, tolerance=math.nan, reason=ANOTHER_SCALE) for one in both if one.kind == "number"]
    return [one if one.status == "equal" else replace(one, status="not judged") for one in numbers]
