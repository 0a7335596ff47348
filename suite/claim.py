"""A claim of the paper that can be checked, and what was measured about it.

An artifact lists its claims in its own file, each with a rule in words and in numbers: ``region``, where the effect must lie
for the claim to hold. :mod:`suite.judging` has the rule of every verdict, :mod:`suite.fitness` what a scale has to show first.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.context import Context
from suite.grounds import Grounds

#: Scales that check the plumbing alone.
UNJUDGED_SCALES = ("smoke",)
#: Regions of a difference whose sign is all that is claimed: zero is in neither.
NEGATIVE = (-math.inf, math.nextafter(0, -1))
POSITIVE = (math.nextafter(0, 1), math.inf)
ANYTHING = (-math.inf, math.inf)

#: What sort of statement a claim is. :data:`suite.fitness.NEEDS` says which controls each of them needs.
#: "ordering" and "rank agreement" compare methods or settings; "trend", "phase", "invariance", "bound" and "number" are about
#: one way of training; "divergence" and "convergence" say how training ends; "finetuning" compares what models are worth on tasks;
#: "timing" is of the machine.
Kind = Literal[
    "number", "ordering", "trend", "divergence", "convergence", "invariance", "phase", "bound", "rank agreement", "finetuning", "timing"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured about a claim.

    Attributes:
        effect: the number that the rule judges; NaN if there is none (a run diverged), which decides nothing.
        low, high: its 95% interval; equal to ``effect`` where it is exact, NaN where ``p`` decides.
        n: independent measurements (seeds, or settings) that it comes from.
        p: two-sided p-value of an effect of zero, by a test of its own (a permutation); NaN where the interval decides.
        largest_of: where the effect is the largest of several means, each of them with half of its 95% interval.
        bounds: what the effect cannot leave, whatever is measured (a share: 0 and 1).
        compared: pairs of runs whose difference is judged, one pair for each comparison.
        runs: what was read.
        note: anything that a reader should know, in a sentence.
    """

    effect: float
    low: float
    high: float
    n: int
    p: float = math.nan
    largest_of: tuple[tuple[float, float], ...] = ()
    bounds: tuple[float, float] = ANYTHING
    compared: tuple[tuple[RunSpec, RunSpec], ...] = ()
    runs: tuple[RunSpec | FinetuningSpec, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confounder:
    """A control that could explain a claim's effect.

    Attributes:
        name: what it is, as the verdict names it.
        measure: the claim's effect with the control in the place of the baseline; None where its runs were not trained.
    """

    name: str
    measure: Callable[[Grounds], Evidence | None]


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
        exact: it follows from definitions (counts, formulas, how training starts), and no training moves it.
        configuration: it compares the paper's configuration with ours: what differs is a choice.
        paper_only: why only the paper's own scale can show it; empty where smaller ones can.
        confounders: controls that could explain it.
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
    exact: bool = False
    configuration: bool = False
    paper_only: str = ""
    confounders: tuple[Confounder, ...] = ()
    models: tuple[str, ...] = ()
