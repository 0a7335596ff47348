"""The entries of the report's sections on claims, errata and theory, from their CSVs."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from analyses.report.interval import interval_drawing
from analyses.report.numbers import between, number, value
from suite.check.tables import Line, read
from suite.context import Context
from suite.judging import RESULT_NAMES

#: A claim as the page shows it: its line of ``claims.csv``, with its numbers in words (``region``, ``effect``, ``n``, ``p``, ``holm_p``),
#: its ``key``, the ``label`` of its artifact, and a ``drawing``.
Shown = dict[str, Any]


def _effect(effect: float, low: float, high: float, unit: str) -> str:
    if math.isnan(effect):
        return ""
    exact = low == high == effect or math.isnan(low)
    endless = math.isinf(low) and math.isinf(high)
    around = "" if exact else " (no interval)" if endless else f" ({number(low)} to {number(high)})"
    return f"{number(effect)}{around} {unit}".rstrip()


def claims(context: Context, labels: Mapping[str, str]) -> list[Shown]:
    """Every claim of ``claims.csv``, by result and then in the order of the artifacts in ``labels``."""
    found = []
    for row in read(context.results / "claims.csv"):
        effect, low, high = (value(row[name]) for name in ("effect", "low", "high"))
        region = value(row["region_low"]), value(row["region_high"])
        found.append({
            **row, "key": row["claim"], "label": labels.get(row["artifact"], row["artifact"]), "region": between(*region),
            "effect": _effect(effect, low, high, row["unit"]), "n": number(row["n"]), "p": number(row["p"]), "holm_p": number(row["holm_p"]),
            "drawing": interval_drawing(effect, low, high, region),
        })
    order = {name: i for i, name in enumerate(labels)}
    return sorted(found, key=lambda claim: (RESULT_NAMES.index(claim["result"]), order.get(claim["artifact"], len(order))))


def reason_of(claim: Shown) -> str:
    """Why a claim is not judged: the first part of its note."""
    return claim["note"].partition(";")[0]


def by_result(found: Iterable[Shown]) -> dict[str, dict[str, list[Shown]]]:
    """Claims by result and reason. Only the result "not at this scale" has reasons; the others have an empty one."""
    results: dict[str, dict[str, list[Shown]]] = {}
    for claim in found:
        reason = reason_of(claim) if claim["result"] == "not at this scale" else ""
        results.setdefault(claim["result"], {}).setdefault(reason, []).append(claim)
    return results


def errata(context: Context) -> list[Line]:
    """The lines of ``errata.csv``, each with a ``title`` and with its ``numbers`` in words (empty if it has none)."""
    found = []
    for row in read(context.results / "errata.csv"):
        printed = f"printed or implied {number(row['published'])}, " if row["published"] else ""
        numbers = f"{printed}computed {number(row['measured'])} ({row['unit']})" if row["measured"] else ""
        found.append({**row, "title": row["id"].replace("-", " ").capitalize(), "numbers": numbers})
    return found


def theory(context: Context) -> list[dict[str, Any]]:
    """Every statement: its name, its place in the paper, counts of the verdicts on print and derivation, and its lines of ``theory.csv``."""
    groups: dict[str, list[Line]] = {}
    for row in read(context.results / "theory.csv"):
        groups.setdefault(row["statement"], []).append(row)
    return [
        {
            "name": name, "place": lines[0]["place"], "lines": lines,
            "printed": Counter(row["verdict"] for row in lines if row["verdict"]),
            "derived": Counter(row["derived_verdict"] for row in lines if row["derived_verdict"]),
        }
        for name, lines in groups.items()
    ]
