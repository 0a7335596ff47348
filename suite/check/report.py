"""Findings of a comparison as text: a table for the terminal, a summary in sentences, and a CSV of all findings."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from tabulate import tabulate

from suite.check.findings import ANOTHER_SCALE, Finding
from suite.check.tables import as_float

#: Lines that a terminal is given; the CSV has them all.
SHOWN = 40
_ROWS = {
    "outside": "are no longer there",
    "new": "are not recorded yet",
    "left out": "left out, which depend on the machine (times, rounding in bfloat16)",
}
_HEADINGS = ("table", "row", "number", "recorded", "fresh", "change", "tolerance", "")
_WIDEST = (14, 56, 22, 22, 22, 22, 10, 70)


def moved(findings: Iterable[Finding]) -> list[Finding]:
    """Findings on what changed, the largest share of its tolerance first; changes outside of it lead."""
    found = (one for one in findings if one.status in ("within", "outside", "not judged"))
    return sorted(found, key=lambda one: (one.strain, np.nan_to_num(abs(one.relative_change))), reverse=True)


def _without_tolerance(numbers: Sequence[Finding]) -> dict[str, int]:
    """How many numbers have no tolerance, by the reason."""
    found = [one for one in numbers if math.isnan(one.tolerance)]
    scales = sum(one.reason == ANOTHER_SCALE for one in found)
    factors = sum(one.freedom > 0 for one in found if one.reason != ANOTHER_SCALE)
    return {
        "no spread over seeds is recorded": len(found) - scales - factors,
        "they spread by factors": factors,
        "they are of two scales": scales,
    }


def failed(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that make the check fail."""
    return [one for one in findings if one.status == "outside"]


def report(findings: Sequence[Finding], shown: int | None = SHOWN) -> str:
    """A table of what moved, with so many lines at most (None: all), and the summary, for the terminal."""
    found = moved(findings)
    lines = [_aligned(map(_cells, found[:shown]))]
    if shown is not None and (hidden := len(found) - shown) > 0:
        lines.append(f"... and {hidden} more, which moved less")
    return "\n".join([*([*lines, ""] if found else []), *summary(findings)])


def listing(findings: Sequence[Finding]) -> str:
    """A table of all findings, moved or not, in the order of the tables, and the summary."""
    rows = ((*cells[:-1], cells[-1] or one.status) for one in findings for cells in [_cells(one)])
    return "\n".join([_aligned(rows), "", *summary(findings)])


def _aligned(rows: Iterable[tuple[str, ...]]) -> str:
    """The headings and the given rows, in columns."""
    short = [[_shorten(cell, width) for cell, width in zip(row, _WIDEST, strict=True)] for row in rows]
    return tabulate(short, _HEADINGS, "plain", disable_numparse=True)


def summary(findings: Sequence[Finding]) -> list[str]:
    """The number of findings of each status, in sentences; the last sentence is the verdict."""
    numbers = [one for one in findings if one.kind == "number"]
    counts = Counter(one.status for one in numbers)
    lines = [
        f"{len(numbers)} numbers compared: {counts['equal']} equal, {counts['within']} moved within their tolerance, "
        f"{counts['outside']} outside of it, {counts['not judged']} moved and not judged."
    ]
    for why, number in _without_tolerance(numbers).items():
        if number:
            lines.append(f"{number} of them have no tolerance, as {why}: a change is shown, not judged.")
    texts = [one for one in findings if one.kind == "text"]
    if texts:
        lines.append(f"{len(texts)} texts changed, {len(failed(texts))} of them where nothing may change.")
    for status, what in _ROWS.items():
        if rows := [one for one in findings if one.kind == "row" and one.status == status]:
            lines.append(f"{len(rows)} rows {what}: {', '.join(dict.fromkeys(one.table for one in rows))}.")
    if outside := failed(findings):
        where = ", ".join(f"{table} ({n})" for table, n in Counter(one.table for one in outside).items())
        lines.append(f"OUTSIDE: {len(outside)} left their tolerance, in {where}.")
    else:
        lines.append("Nothing left its tolerance.")
    return lines


def to_csv(findings: Sequence[Finding]) -> str:
    """Every finding, one line each."""
    columns = [*(field.name for field in dataclasses.fields(Finding)), "strain"]
    frame = pd.DataFrame([[getattr(one, name) for name in columns] for one in findings], columns=columns, dtype=object)
    return frame.to_csv(index=False, lineterminator="\n")


def _cells(one: Finding) -> tuple[str, ...]:
    change = ""
    if math.isfinite(one.change) and one.change:
        change = f"{one.change:+.3g}"
        if math.isfinite(one.relative_change):
            change += f" ({one.relative_change:+.1%})"
    mark = {"outside": "OUTSIDE", "not judged": "not judged"}.get(one.status, "")
    return (
        one.table,
        one.row,
        one.unit or one.column,
        _value(one.recorded, one.recorded_n),
        _value(one.fresh, one.fresh_n),
        change,
        "" if math.isnan(one.tolerance) else f"{one.tolerance:.2g}",
        "; ".join(filter(None, (mark, one.reason))),
    )


def _value(cell: str, n: int) -> str:
    number = as_float(cell)
    text = (cell or "none") if math.isnan(number) else f"{number:.6g}"
    return f"{text} (n={n})" if n else text


def _shorten(text: str, width: int) -> str:
    """The text, its middle cut out if it is too long: names of rows differ at the end."""
    half = (width - 3) // 2
    return text if len(text) <= width else f"{text[: width - 3 - half]}...{text[-half:]}"
