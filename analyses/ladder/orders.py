"""At which lengths two rows stand in the printed order, and between which they cross."""

import itertools
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

from analyses.common.published import printed_perplexities
from suite.statistics import CONFIDENCE

ORDER = "printed order"
#: The order of a pair at a length.
PRINTED, OPPOSITE, UNDECIDED = "as printed", "opposite", "undecided"
#: The column that lists a pair's lengths with this order.
LENGTHS = {PRINTED: "lengths_as_printed", OPPOSITE: "lengths_opposite", UNDECIDED: "lengths_undecided"}
#: The column that lists the lengths at which a pair's mean gap is on this side, decided or not. A length with a diverged run is in neither.
MEANS = {PRINTED: "lengths_mean_as_printed", OPPOSITE: "lengths_mean_opposite"}


def side(mean: float, holm_p: float) -> str:
    """The order of a pair, from the mean gap of the row that is printed as better (in nats; below zero is as printed) and its corrected p-value."""
    if not holm_p <= 1 - CONFIDENCE:
        return UNDECIDED
    return PRINTED if mean < 0 else OPPOSITE


def printed_pairs(model: str, rows: Collection[str]) -> list[tuple[str, str]]:
    """(better, worse) for every two rows whose perplexities on a model differ in Table 2, best first."""
    found = {row: perplexity for (printed, row), perplexity in printed_perplexities().items() if printed == model and row in rows}
    ranked = sorted(found, key=lambda row: found[row])
    return [(a, b) for a, b in itertools.combinations(ranked, 2) if found[a] < found[b]]


def appears_from(sides: Mapping[Fraction, str]) -> Fraction | None:
    """The shortest length from which every compared length shows the printed order; None if the longest does not."""
    return min(itertools.takewhile(lambda length: sides[length] == PRINTED, sorted(sides, reverse=True)), default=None)


def crossings(sides: Mapping[Fraction, str]) -> list[tuple[Fraction, Fraction]]:
    """Pairs of neighbouring decided lengths with different orders; undecided lengths may lie between them."""
    decided = [length for length in sorted(sides) if sides[length] != UNDECIDED]
    return [(a, b) for a, b in itertools.pairwise(decided) if sides[a] != sides[b]]


def order_line(better: str, worse: str, sides: Mapping[Fraction, str], means: Mapping[Fraction, float]) -> dict[str, Any]:
    """The line of a printed pair in the ladder's table, from its orders and its mean gaps (nats) by length."""
    start, turns = appears_from(sides), crossings(sides)
    return {
        "variant": better, "against": worse, "quantity": ORDER, "appears_from": "" if start is None else str(start),
        **{column: " ".join(str(length) for length in sorted(sides) if sides[length] == kind) for kind, column in LENGTHS.items()},
        MEANS[PRINTED]: " ".join(str(length) for length in sorted(means) if means[length] < 0),
        MEANS[OPPOSITE]: " ".join(str(length) for length in sorted(means) if means[length] > 0),
        "crosses_between": "; ".join(f"{a} and {b}" for a, b in turns),
    }
