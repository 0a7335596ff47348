"""The controls of a length: known facts that its runs have to reproduce before an order at that length could be judged.

They are the controls of :mod:`suite.fitness` that concern a length as a whole, with the same rules, in nats. The controls of a single row or
pair (rates inside what was tried, neighbouring rates, scatter of seeds) are not among them.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from analyses.ladder.rungs import gap
from suite.fitness import FULL, FULL_BEATS_LORA, LARGER_BEATS_SMALLER, LONGER, LONGER_KEEPS, LOW_RANK, POET, ROTATIONS_MOVE, SECOND_RATE_IS_LITTLE, TWO_RATES
from suite.fitness import below_zero, leaves_out_zero, on_one_side, second_rate_is_little

CONTROL = "control"
#: Keys for POET without R and P and for AdamW on the next larger model, beside the keys of rows.
WITHOUT, LARGER = "POET without R and P", "AdamW on the next larger model"
#: For each control the two keys whose gap (first minus second) is measured, and the rule by which its 95% interval (low, high) passes.
_GAPS: dict[str, tuple[str, str, Callable[[float, float], bool]]] = {
    FULL_BEATS_LORA: (FULL, LOW_RANK, below_zero),
    LARGER_BEATS_SMALLER: (LARGER, FULL, below_zero),
    ROTATIONS_MOVE: (POET, WITHOUT, leaves_out_zero),
    SECOND_RATE_IS_LITTLE: (FULL, TWO_RATES, second_rate_is_little),
}
#: Final perplexities at a length, by row (or :data:`WITHOUT`, :data:`LARGER`) and then by seed.
Ends = Mapping[str, Mapping[int, float]]


def control_lines(model: str, by_length: Mapping[Fraction, Ends]) -> list[dict[str, Any]]:
    """A line of the ladder's table for each control and length of a model: its outcome, and its numbers in words."""
    lines = []
    for length, ends in by_length.items():
        found = {name: _outcome(_between(ends, first, second), passes) for name, (first, second, passes) in _GAPS.items()}
        longer = min((other for other in by_length if other >= LONGER * length), default=None)
        found[LONGER_KEEPS] = _same_sign(_between(ends, POET, FULL), _between(by_length.get(longer, {}), POET, FULL))
        lines += [{"model": model, "variant": name, "quantity": CONTROL, "length": str(length), "outcome": outcome, "note": said} for name, (outcome, said) in found.items()]
    return lines


def fit_lengths(outcomes: Iterable[tuple[str, str]]) -> list[str]:
    """The lengths at which every control passed, from (length, outcome) of each control."""
    by_length: dict[str, list[str]] = {}
    for length, outcome in outcomes:
        by_length.setdefault(length, []).append(outcome)
    return [length for length, found in by_length.items() if set(found) == {"passed"}]


def _between(ends: Ends, first: str, second: str) -> tuple[float, float, float] | None:
    return gap(ends.get(first, {}), ends.get(second, {}))


def _outcome(between: tuple[float, float, float] | None, passes: Callable[[float, float], bool]) -> tuple[str, str]:
    """Outcome and numbers of a gap (mean, low, high): "not measured" without a finite interval, "failed" if a run diverged."""
    if between and math.isnan(between[0]):
        return "failed", "diverged"
    if between is None or not all(map(math.isfinite, between)):
        return "not measured", ""
    return "passed" if passes(*between[1:]) else "failed", "{:+.3f} ({:+.3f} to {:+.3f})".format(*between)


def _same_sign(now: tuple[float, float, float] | None, later: tuple[float, float, float] | None) -> tuple[str, str]:
    """Outcome and numbers of the control that both intervals lie on one side of zero."""
    outcomes = [_outcome(between, leaves_out_zero) for between in (now, later)]
    if any(outcome == "not measured" for outcome, _ in outcomes):
        return "not measured", ""
    return "passed" if on_one_side(now, later) else "failed", f"{outcomes[0][1]}, later {outcomes[1][1]}"
