"""What has its own section beside the tables and figures: errata, and theory by statement."""

from collections import Counter
from typing import Any

from analyses.report.numbers import number
from analyses.report.sources import Row, read_rows
from suite.context import Context


def errata(context: Context) -> list[Row]:
    """Every entry as its line of ``errata.csv``, with its ``title`` and its ``numbers`` in words (empty if it has none)."""
    found = []
    for row in read_rows(context, "errata.csv"):
        printed = f"printed or implied {number(row['published'])}, " if row["published"] else ""
        numbers = f"{printed}computed {number(row['measured'])} ({row['unit']})" if row["measured"] else ""
        found.append({**row, "title": row["id"].replace("-", " ").capitalize(), "numbers": numbers})
    return found


def theory(context: Context) -> list[dict[str, Any]]:
    """Every statement: where it stands, how often print and derivation held, and its lines of ``theory.csv``."""
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
