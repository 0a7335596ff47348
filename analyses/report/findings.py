"""The entries of two sections of the report: the errata, and the theory by statement."""

from collections import Counter
from typing import Any

from analyses.report.numbers import number
from analyses.report.sources import Row, read_rows
from suite.context import Context


def errata(context: Context) -> list[Row]:
    """The lines of ``errata.csv``, each with a ``title`` and with its ``numbers`` in words (empty if it has none)."""
    found = []
    for row in read_rows(context, "errata.csv"):
        printed = f"printed or implied {number(row['published'])}, " if row["published"] else ""
        numbers = f"{printed}computed {number(row['measured'])} ({row['unit']})" if row["measured"] else ""
        found.append({**row, "title": row["id"].replace("-", " ").capitalize(), "numbers": numbers})
    return found


def theory(context: Context) -> list[dict[str, Any]]:
    """Every statement: its name, its place in the paper, counts of the verdicts on print and derivation, and its lines of ``theory.csv``."""
    groups: dict[str, list[Row]] = {}
    for row in read_rows(context, "theory.csv"):
        groups.setdefault(row["statement"], []).append(row)
    return [
        {
            "name": name, "place": lines[0]["place"], "lines": lines,
            "printed": Counter(row["verdict"] for row in lines if row["verdict"]),
            "derived": Counter(row["derived_verdict"] for row in lines if row["derived_verdict"]),
        }
        for name, lines in groups.items()
    ]
