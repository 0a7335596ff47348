"""The claims: how the results fell, which are decided, and every row of ``claims.csv``."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from analyses.report.interval import interval
from analyses.report.numbers import between, number, value
from analyses.report.sources import read_rows
from suite.context import Context
from suite.judging import Result

RESULTS: tuple[str, ...] = get_args(Result)
#: Results that say that something was shown.
DECIDED = RESULTS[: RESULTS.index("undecided")]
_COLUMNS = (
    "claim", "artifact", "place", "says", "kind", "rule", "region_low", "region_high", "effect", "low", "high", "n", "unit",
    "scope", "result", "p", "holm_p", "fitness", "note", "runs",
)  # fmt: skip
#: A claim as the page shows it: its line of ``claims.csv``, with what is written for reading (``region``, ``effect``,
#: ``n``, ``p``), its ``key``, the ``label`` of its artifact, and a ``drawing``.
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
    for row in read_rows(context, "claims.csv", _COLUMNS):
        effect, low, high = (value(row[name]) for name in ("effect", "low", "high"))
        region = value(row["region_low"]), value(row["region_high"])
        # A rank agreement lies between -1 and 1, whatever was measured.
        window = (-1.0, 1.0) if row["kind"] == "rank agreement" else None
        found.append({
            **row, "key": row["claim"], "label": labels.get(row["artifact"], row["artifact"]), "region": between(*region),
            "effect": _effect(effect, low, high, row["unit"]), "n": number(row["n"]), "p": number(row["p"]), "holm_p": number(row["holm_p"]),
            "drawing": interval(effect, low, high, region, window),
        })
    order = {name: i for i, name in enumerate(labels)}
    return sorted(found, key=lambda claim: (RESULTS.index(claim["result"]), order.get(claim["artifact"], len(order))))


@dataclass(frozen=True, slots=True)
class Tally:
    """How the results of some claims fell: ``counts`` has those that occur, in the order of :data:`RESULTS`."""

    name: str
    total: int
    counts: dict[str, int]

    @property
    def words(self) -> str:
        """The counts in words."""
        return ", ".join(f"{count} {result}" for result, count in self.counts.items())


def _tally(name: str, some: Sequence[Shown]) -> Tally:
    counts = Counter(claim["result"] for claim in some)
    return Tally(name, len(some), {result: counts[result] for result in RESULTS if counts[result]})


def tallies(found: Sequence[Shown], attribute: str, order: Sequence[str] = ()) -> list[Tally]:
    """One tally for each value of an attribute of claims, in an order, or else in alphabetic order."""
    groups: dict[str, list[Shown]] = {}
    for claim in found:
        groups.setdefault(claim[attribute], []).append(claim)
    names = sorted(groups, key=lambda name: (order.index(name) if name in order else len(order), name))
    return [_tally(name, groups[name]) for name in names]


def _by_turns(some: Sequence[Shown]) -> list[Shown]:
    """The first claim of each artifact, then the second ones, and so on: the first few say something of everything.

    What rests on trained runs comes first: it says more of the method than what a formula gives.
    """
    before: Counter[str] = Counter()
    turns = []
    for claim in some:
        turns.append((not claim["runs"], before[claim["artifact"]]))
        before[claim["artifact"]] += 1
    return [some[i] for i in sorted(range(len(some)), key=turns.__getitem__)]


def overview(found: Sequence[Shown], labels: Mapping[str, str]) -> dict:
    """What the summary says of the claims, for the template."""
    by_result = {result: [claim for claim in found if claim["result"] == result] for result in RESULTS}
    reasons: dict[str, list[Shown]] = {}
    for claim in by_result["not at this scale"]:
        reasons.setdefault(claim["note"], []).append(claim)
    return {
        "total": _tally("all", found),
        "by_name": {tally.name: tally for tally in tallies(found, "artifact")},
        "by_scope": tallies(found, "scope"),
        "by_kind": tallies(found, "kind"),
        "by_artifact": tallies(found, "label", list(labels.values())),
        "decided": {result: _by_turns(by_result[result]) for result in DECIDED if by_result[result]},
        "without_interval": sum("(no interval)" in claim["effect"] for claim in by_result["undecided"]),
        "beyond": reasons,
        "ranks": [claim for claim in found if claim["kind"] == "rank agreement" and claim["effect"]],
    }
