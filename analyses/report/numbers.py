"""Numbers as the page writes them, and the small table of printed values beside measured ones."""

import math
from collections.abc import Sequence
from typing import Any

from suite.check.tables import Line

#: Numbers of a smaller size are shown as 0: regions of a sign end at the floats next to zero.
TINY = 1e-300


def value(text: str) -> float:
    """A cell of a CSV as a number; NaN for an empty one."""
    return float(text) if text else math.nan


def number(x: float | str) -> str:
    """Four significant digits, thousands apart; a word stays as it is, NaN is empty."""
    if isinstance(x, str):
        try:
            x = value(x)
        except ValueError:
            return x
    if math.isnan(x):
        return ""
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    if abs(x) < TINY:
        return "0"
    if abs(x) < 1e-3 or abs(x) >= 1e15:
        return f"{x:.3g}"
    if x == int(x) or abs(x) >= 1e4:
        return f"{x:,.0f}"
    return f"{x:.4g}"


def between(low: float, high: float) -> str:
    """A closed range in words. An end at a float next to zero is shown as "above 0" or "below 0"."""
    strict_low, strict_high = 0 < low < TINY, -TINY < high < 0
    if low == high:
        return f"exactly {number(low)}"
    if math.isinf(low) and math.isinf(high):
        return "anything"
    if math.isinf(low):
        return f"{'below' if strict_high else 'at most'} {number(high)}"
    if math.isinf(high):
        return f"{'above' if strict_low else 'at least'} {number(low)}"
    return f"{number(low)} to {number(high)}"


def comparison(rows: Sequence[Line]) -> dict[str, Any] | None:
    """The lines of a tidy CSV with a printed value; None if there are none.

    Returns:
        ``about``: what all lines share, in words. ``settings``: the names of columns left of ``published``, from the left, each of which separates
        further lines. ``lines``: of each its settings, printed value, measured value, spread and unit. ``spread``: whether any line has one. ``unit``:
        of all lines; empty if they differ.
    """
    printed = [row for row in rows if row.get("published")]
    if not printed:
        return None
    names = list(printed[0])
    settings: list[str] = []
    groups = 1
    for name in names[: names.index("published")]:
        found = len({tuple(row[n] for n in (*settings, name)) for row in printed})
        if found > groups:
            settings, groups = [*settings, name], found
    shared = [n for n in names[: names.index("published")] if printed[0][n] and len({row[n] for row in printed}) == 1]
    units = {row.get("unit", "") for row in printed}
    lines = [
        (
            tuple(number(row[n]) for n in settings),
            number(row["published"]) + _read_off(row),
            _measured(row),
            f"± {number(row['std'])}" if row.get("std") else "", row.get("unit", ""),
        )
        for row in printed
    ]
    return {
        "about": ", ".join(f"{_words(n)} {printed[0][n]}" for n in shared), "settings": list(map(_words, settings)),
        "lines": lines, "spread": any(line[3] for line in lines), "unit": units.pop() if len(units) == 1 else "",
    }


def _measured(row: Line) -> str:
    """The measured value, or in words why there is none: a run diverged, or a curve does not cross the other."""
    if row.get("diverged") not in (None, "", "0"):
        return "diverged"
    return {"no": "no crossing", "below throughout": "below throughout"}.get(row.get("crossed", ""), number(row["measured"]))


def _words(column: str) -> str:
    return column.replace("_", " ")


def _read_off(row: Line) -> str:
    """The range of a published value that was read off a figure; empty for a printed number."""
    low, high = row.get("published_low"), row.get("published_high")
    return f" ({number(low)} to {number(high)})" if low and high and low != high else ""
