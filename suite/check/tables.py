"""Matching the rows of recorded and fresh tables: the name of a row, its number, and its columns that are not compared."""

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
#: Where a number comes from, which decides its tolerance.
Source = Literal["trained", "computed", "counted", "of the machine"]

#: The column with a row's number: in tables and figures, in ``claims.csv``, and in ``lr_sweep.csv``.
VALUES = ("measured", "effect", "perplexity")
#: Columns that are not compared: they say how a number was obtained, or follow from numbers that are judged.
NOT_COMPARED = frozenset(
    "median validation_loss n std diverged collapsed runs_of_one_text low high p holm_p seeds runs note gain gain_share gain_shares measured_difference difference_low difference_high cost cost_unit foreign "
    "gap_adamw gap_adamw_low gap_adamw_high gap_adamw-two-rates gap_adamw-two-rates_low gap_adamw-two-rates_high".split()
)
#: Columns with words that follow from the row's number. If training moves the number, it may change them.
CONCLUSIONS = frozenset(
    "verdict result fitness direction crossed learned outcome appears_from lengths_as_printed lengths_opposite lengths_undecided "
    "lengths_mean_as_printed lengths_mean_opposite crosses_between".split()
)
#: Units of counts that are the same for every seed of a scale.
COUNTS = frozenset(("elements",))


@dataclass(frozen=True, slots=True)
class Number:
    """A measured number.

    Attributes:
        value: the mean over runs; NaN if a run has no value (it diverged).
        std: standard deviation over seeds; NaN for fewer than two.
        n: number of runs that have a value.
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
        row: its name: the cells that name it, joined by commas.
        recorded, fresh: its cells by column, as written; None if that table lacks the row.
    """

    table: str
    row: str
    recorded: Line | None
    fresh: Line | None

    @property
    def source(self) -> Source:
        """Where the number comes from, according to the recorded row, or to the fresh row if it is new."""
        line = self.recorded or self.fresh or {}
        if line.get("device") or line.get("cost_unit") == "s" or line.get("unit", "").endswith("in bfloat16"):
            return "of the machine"
        if line.get("scale") == "any" or line.get("scope") == "exact":
            return "computed"
        return "counted" if line.get("unit") in COUNTS else "trained"


def read(path: Path) -> list[Line]:
    """The lines of a CSV file, every cell as written."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def checked(lines: list[Line]) -> list[Line]:
    """The given lines, if they are a table that can be compared.

    Raises:
        ValueError: it has no lines or no number, a line is cut short, or a count or spread is no number.
    """
    if not lines or not set(VALUES) & set(lines[0]):
        raise ValueError(f"no lines with a column {', '.join(VALUES[:-1])} or {VALUES[-1]}")
    for place, line in enumerate(lines, 2):
        if None in line or None in line.values():
            raise ValueError(f"line {place} has more or fewer cells than the first")
        for column in ("n", "std", "diverged", "collapsed"):
            if line.get(column) and not (column == "std" and line[column] == "nan") and math.isnan(as_float(line[column])):
                raise ValueError(f"{column} in line {place} is {line[column]!r}")
    return lines


def pairs(table: str, recorded: Sequence[Line], fresh: Sequence[Line]) -> list[Pair]:
    """Every row of two tables, the recorded and the fresh row of a name together.

    A row is named by the fewest leading columns that tell all rows of either table apart: tidy tables begin with the
    columns that identify a row. Rows with equal names are numbered in their order.
    """
    width = max(_naming_columns(recorded), _naming_columns(fresh))
    old, new = _by_name(recorded, width), _by_name(fresh, width)
    names = [*old, *(name for name in new if name not in old)]
    return [Pair(table, ", ".join(name), old.get(name), new.get(name)) for name in names]


def _naming_columns(lines: Sequence[Line]) -> int:
    columns = list(lines[0]) if lines else []
    # Columns with numbers, and those behind them, are never part of a name.
    end = next((i for i, column in enumerate(columns) if column in ("published", *VALUES)), len(columns))
    for width in range(1, end):
        if len({tuple(line.values())[:width] for line in lines}) == len(lines):
            return width
    return end


def _by_name(lines: Sequence[Line], width: int) -> dict[tuple[str, ...], Line]:
    """The lines by name: their first ``width`` cells; a number (a step, a block) has its column's name before it."""
    found: dict[tuple[str, ...], Line] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        cells = [(column, cell) for column, cell in list(line.items())[:width] if cell]
        name = tuple(cell if math.isnan(as_float(cell)) else f"{column} {cell}" for column, cell in cells)
        seen[name] += 1
        found[(*name, f"no. {seen[name]}") if seen[name] > 1 else name] = line
    return found


def value_column(line: Line) -> str | None:
    """The column with the number of a row; None if the table has no such column."""
    return next((column for column in VALUES if column in line), None)


def measurement(line: Line) -> Number | None:
    """The number of a row; None if the table has names and texts alone."""
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
    """The standard deviation behind a t-interval, from its longer side, as the other may be cut off."""
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
