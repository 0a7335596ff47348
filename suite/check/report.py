"""What a comparison found: a table for the terminal, sentences that sum up, and a CSV of every number."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from tabulate import tabulate

from suite.check.judge import ANOTHER_SCALE, Finding
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
    """What is not as recorded, by the share of its tolerance that it used up: what is outside first."""
    found = (one for one in findings if one.status in ("within", "outside", "not judged"))
    return sorted(found, key=lambda one: (one.strain, np.nan_to_num(abs(one.relative_change))), reverse=True)


def _untold(numbers: Sequence[Finding]) -> dict[str, int]:
    """How many numbers have no tolerance, by the reason."""
    untold = [one for one in numbers if math.isnan(one.tolerance)]
    scales = sum(one.reason == ANOTHER_SCALE for one in untold)
    factors = sum(one.freedom > 0 for one in untold if one.reason != ANOTHER_SCALE)
    return {
        "no spread over seeds is recorded": len(untold) - scales - factors,
        "they spread by factors": factors,
        "they are of two scales": scales,
    }


def failed(findings: Iterable[Finding]) -> list[Finding]:
    """What makes the check fail."""
    return [one for one in findings if one.status == "outside"]


def report(findings: Sequence[Finding], shown: int | None = SHOWN) -> str:
    """What moved, and what that comes to, for the terminal.

    Args:
        findings: all of them.
        shown: lines of what moved; None for all.
    """
    found = moved(findings)
    lines = _aligned(map(_cells, found[:shown]))
    if hidden := len(found) - len(found[:shown]):
        lines.append(f"... and {hidden} more, which moved less")
    return "\n".join([*([*lines, ""] if found else []), *summary(findings)])


def listing(findings: Sequence[Finding]) -> str:
    """Every number, moved or not, and every text that changed, in the order of the tables; then what that comes to."""
    cells = (_cells(one) for one in findings)
    lines = _aligned((*row[:-1], row[-1] or one.status) for row, one in zip(cells, findings, strict=True))
    return "\n".join([*lines, "", *summary(findings)])


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """The headings and some rows, in columns."""
    short = [[_shorten(cell, width) for cell, width in zip(row, _WIDEST, strict=True)] for row in rows]
    return [tabulate(short, _HEADINGS, "plain", disable_numparse=True)]


def summary(findings: Sequence[Finding]) -> list[str]:
    """How the findings fell, in sentences; the last one is the verdict."""
    numbers = [one for one in findings if one.kind == "number"]
    counts = Counter(one.status for one in numbers)
    lines = [
        f"{len(numbers)} numbers compared: {counts['equal']} equal, {counts['within']} moved within their tolerance, "
        f"{counts['outside']} outside of it, {counts['not judged']} moved and not judged."
    ]
    for why, number in _untold(numbers).items():
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
    """Without its middle, if it is too long: names of rows differ at the end."""
    half = (width - 3) // 2
    return text if len(text) <= width else f"{text[: width - 3 - half]}...{text[-half:]}"
