"""Recorded and fresh tables, row beside row: what names a row, what is judged in it, and what is only about it."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from suite.statistics import t_quantile

Line = dict[str, str]
Kind = Literal["trained", "computed", "counted", "of the machine"]

#: The number that a row is about: of tables and figures, of ``claims.csv``, and of ``lr_sweep.csv``.
VALUES = ("measured", "effect", "perplexity")
#: Columns that say how a number was come by, or that follow from judged numbers of this row and others.
BESIDE = frozenset(
    "median validation_loss n std diverged collapsed runs_of_one_text low high p holm_p seeds runs note gain gain_share measured_difference difference_low difference_high cost cost_unit origin".split()
)
#: Words that follow from a row's number: where that one is trained, they may turn with it.
CONCLUSIONS = frozenset(("verdict", "result", "fitness", "direction", "crossed"))
#: Units of what is counted at a scale, the same for every seed.
COUNTS = frozenset(("elements",))


@dataclass(frozen=True, slots=True)
class Number:
    """A measured number.

    Attributes:
        value: the mean; NaN if any of its runs has none (it diverged).
        std: over seeds; NaN for fewer than two.
        n: runs that have one.
    """

    value: float
    std: float
    n: int

    @property
    def found(self) -> str:
        """Which of its runs have a value: "all", "some" or "none"."""
        return "all" if not math.isnan(self.value) else "some" if self.n else "none"


@dataclass(frozen=True, slots=True)
class Pair:
    """One row, recorded and fresh.

    Attributes:
        table: its file's name without ``.csv``.
        row: what names it, joined.
        recorded, fresh: its cells by column, as written; None where the table lacks it.
    """

    table: str
    row: str
    recorded: Line | None
    fresh: Line | None

    @property
    def kind(self) -> Kind:
        """Where its number comes from, as the recorded row (or a new one) says."""
        line = self.recorded or self.fresh or {}
        if line.get("device") or line.get("cost_unit") == "s" or line.get("unit", "").endswith("in bfloat16"):
            return "of the machine"
        if line.get("scale") == "any":
            return "computed"
        return "counted" if line.get("unit") in COUNTS else "trained"


def read(path: Path) -> list[Line]:
    """The lines of a CSV file, every cell as written."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def checked(lines: list[Line]) -> list[Line]:
    """The lines of a table, if it is one that can be compared.

    Raises:
        ValueError: it has no lines or no number, a line is cut short, or a count or spread is no number.
    """
    if not lines or not set(VALUES) & set(lines[0]):
        raise ValueError(f"no lines with a column {', '.join(VALUES[:-1])} or {VALUES[-1]}")
    for place, line in enumerate(lines, 2):
        if None in line or None in line.values():
            raise ValueError(f"line {place} has more or fewer cells than the first")
        for column in ("n", "std", "diverged", "collapsed"):
            if line.get(column) and line[column] != "nan" and math.isnan(as_float(line[column])):
                raise ValueError(f"{column} in line {place} is {line[column]!r}")
    return lines


def pairs(table: str, recorded: Sequence[Line], fresh: Sequence[Line]) -> list[Pair]:
    """Every row of two tables.

    A row is named by the fewest leading columns that tell all rows of either table apart: tidy tables begin with what a
    row is about. Rows that no column tells apart are told apart by their order.
    """
    width = max(_naming_columns(recorded), _naming_columns(fresh))
    old, new = _by_name(recorded, width), _by_name(fresh, width)
    names = [*old, *(name for name in new if name not in old)]
    return [Pair(table, ", ".join(name), old.get(name), new.get(name)) for name in names]


def _naming_columns(lines: Sequence[Line]) -> int:
    columns = list(lines[0]) if lines else []
    # What is measured names nothing, however far the search would have to go.
    end = next((i for i, column in enumerate(columns) if column in ("published", *VALUES)), len(columns))
    for width in range(1, end):
        if len({tuple(line.values())[:width] for line in lines}) == len(lines):
            return width
    return end


def _by_name(lines: Sequence[Line], width: int) -> dict[tuple[str, ...], Line]:
    """Lines by their first cells; a number (a step, a block) has its column's name before it."""
    found: dict[tuple[str, ...], Line] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        cells = [(column, cell) for column, cell in list(line.items())[:width] if cell]
        name = tuple(cell if math.isnan(as_float(cell)) else f"{column} {cell}" for column, cell in cells)
        seen[name] += 1
        found[(*name, f"no. {seen[name]}") if seen[name] > 1 else name] = line
    return found


def value_column(line: Line) -> str | None:
    """The column that has the number of a row; None if the table has none."""
    return next((column for column in VALUES if column in line), None)


def measurement(line: Line) -> Number | None:
    """The number of a row; None if the table has none (its rows are names and text alone)."""
    column = value_column(line)
    if column is None:
        return None
    n = int(float(line["n"] or 0)) if "n" in line else 1
    std = as_float(line.get("std", "")) if "std" in line else _from_interval(line, column, n)
    return Number(as_float(line[column]), std, n)


def method(line: Line) -> str:
    """The method of a row without its settings: "poet-fs" of ``poet-fs-1_2-init=xavier`` and of "POET FS b=1/2"."""
    name = line.get("variant") or line.get("method") or line.get("series") or ""
    words = itertools.takewhile(lambda word: word.isalpha(), re.split(r"[ ,-]+", name.lower()))
    return "-".join(words)


def interval(line: Line) -> tuple[float, float] | None:
    """The recorded interval of a row; None where there is none."""
    low, high = as_float(line.get("low", "")), as_float(line.get("high", ""))
    return None if math.isnan(low) or math.isnan(high) else (low, high)


def _from_interval(line: Line, column: str, n: int) -> float:
    """The standard deviation that a t-interval (the longer side: the other may be cut off) was made from."""
    ends = interval(line)
    if ends is None or n < 2:
        return math.nan
    value = as_float(line[column])
    half = max(value - ends[0], ends[1] - value)
    return half / t_quantile(n) * math.sqrt(n) if math.isfinite(half) else math.nan


def as_float(cell: str) -> float:
    """A cell as a number; NaN if it is none."""
    try:
        return float(cell)
    except ValueError:
        return math.nan
