"""Fresh results against the recorded ones, table by table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from poet.system.errors import UserError
from suite.check.judge import Finding, findings
from suite.check.tables import Pair, pairs, read
from suite.scale import ROOT


class NothingRecordedError(UserError):
    """There is nothing to compare with."""


def recorded_folder(scale: str, root: Path = ROOT) -> Path:
    """Where the recorded tables of a scale are.

    Raises:
        NothingRecordedError: there are none.
    """
    folder = root / "analyses" / "recorded" / scale
    if not any(folder.glob("*.csv")):
        raise NothingRecordedError(
            f"nothing is recorded at scale {scale}: make its results, look them over, and keep them with "
            f"`make record SCALE={scale}`"
        )
    return folder


def compare(recorded: Path, results: Path, tables: Iterable[str]) -> list[Finding]:
    """Every number of the tables, fresh against recorded.

    Args:
        recorded: folder with the recorded tables.
        results: the results folder.
        tables: file names below ``results``; the recorded ones have the same names.
    """
    found: list[Pair] = []
    for name in tables:
        old, new = recorded / name, results / name
        found += pairs(Path(name).stem, read(old) if old.exists() else [], read(new) if new.exists() else [])
    return findings(found)
