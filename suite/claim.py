"""A claim of the paper that can be checked, what was measured about it, and the rule that judges it.

An artifact lists its claims in its own file, each with a rule in words and in numbers: ``region``, where the effect must lie
for the claim to hold. The rule of every verdict: the claim is ``reproduced`` if the whole 95% interval of the effect lies
inside the region, ``contradicted`` if all of it lies outside, ``inconclusive`` otherwise (one seed has an interval without
end). Where all seeds give the same number the interval has no width: more seeds might still differ. What a scale cannot show is ``not at this scale``, with the reason. About one in twenty intervals misses by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from poet.training.spec import RunSpec
from suite.context import Context

CONFIDENCE = 0.95
#: Scales that check the plumbing alone.
UNJUDGED_SCALES = ("smoke",)
#: Regions of a difference whose sign is all that is claimed: zero is in neither.
NEGATIVE = (-math.inf, math.nextafter(0, -1))
POSITIVE = (math.nextafter(0, 1), math.inf)

Kind = Literal["number", "ordering", "trend", "divergence", "invariance", "phase", "bound", "rank agreement"]
Verdict = Literal["reproduced", "contradicted", "inconclusive", "not at this scale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured about a claim.

    Attributes:
        effect: the number that the rule judges; NaN if there is none (a run diverged), which is inconclusive.
        low, high: its 95% interval; equal to ``effect`` where it is exact.
        n: independent measurements (seeds, or settings) that it comes from.
        p: two-sided p-value of an effect of zero; NaN where that is not the question.
        runs: what was read.
        note: anything that a reader should know, in a sentence.
    """

    effect: float
    low: float
    high: float
    n: int
    p: float = math.nan
    runs: tuple[RunSpec, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence, number or trend of the paper.

    Attributes:
        key: unique; begins with its artifact's name.
        place: where the paper says it ("Section 6.1", "Table 2", "Figure 6's caption").
        says: what it says, in our words.
        kind: what sort of statement it is.
        rule: how it is judged, in words: what the effect is and where it must lie.
        unit: of the effect; empty for a pure number.
        region: the same in numbers: the closed range of effects for which the claim holds.
        measure: the effect from the records or from an artifact's table.
        paper_only: why only the paper's own scale can show it; empty where smaller ones can.
        models: it is about these, beside its artifact's: a scale that lacks one cannot show it.
    """

    key: str
    place: str
    says: str
    kind: Kind
    rule: str
    unit: str
    region: tuple[float, float]
    measure: Callable[[Context], Evidence]
    paper_only: str = ""
    models: tuple[str, ...] = ()


def judge(evidence: Evidence, region: tuple[float, float]) -> Verdict:
    """The verdict on an effect by the rule at the top of this file."""
    if any(map(math.isnan, (evidence.effect, evidence.low, evidence.high))):
        return "inconclusive"
    if region[0] <= evidence.low and evidence.high <= region[1]:
        return "reproduced"
    return "contradicted" if evidence.high < region[0] or evidence.low > region[1] else "inconclusive"
