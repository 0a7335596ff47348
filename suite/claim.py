"""A claim of the paper that can be checked, and what was measured about it.

An artifact lists its claims in its own file. Each claim has a rule in words and a ``region``: the effects for which it holds.
:mod:`suite.judging` has the rules of verdicts, and :mod:`suite.fitness` the controls that a scale has to pass first.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.context import Context
from suite.grounds import Grounds

#: Scales that only check that the pipeline works: of their claims, only exact ones are judged.
UNJUDGED_SCALES = ("smoke",)
#: Regions of a claim about the sign of a difference. Neither has zero.
NEGATIVE = (-math.inf, math.nextafter(0, -1))
POSITIVE = (math.nextafter(0, 1), math.inf)
ANYTHING = (-math.inf, math.inf)

#: What sort of statement a claim is. :data:`suite.fitness.NEEDS` says which controls each kind needs.
#: "ordering" and "rank agreement" compare methods or settings; "trend", "phase", "invariance", "bound" and "number" are about
#: one way of training; "divergence" and "convergence" say how training ends; "finetuning" compares scores on tasks;
#: "timing" is about speed on a machine.
Kind = Literal[
    "number", "ordering", "trend", "divergence", "convergence", "invariance", "phase", "bound", "rank agreement", "finetuning", "timing"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured about a claim.

    Attributes:
        effect: the number that the rule judges; NaN if there is none, such as after a run diverged: the claim is then undecided.
        low, high: its 95% interval; equal to ``effect`` where it is exact, NaN where ``p`` decides. A t-interval may leave ``bounds``.
        n: number of independent measurements (seeds or settings) behind the effect.
        p: two-sided p-value against an effect of zero, by a permutation test; NaN where the interval decides; 1 where nothing can be decided.
        events: how many of the n independent events happened, if the effect is their share; its p-value is binomial. None for other effects.
        largest_of: (mean, half width of its 95% interval) of each mean, if the effect is the largest of several means.
        bounds: the least and the greatest value that the effect can have, such as 0 and 1 for a share.
        compared: pairs of runs whose difference is judged, one pair for each comparison.
        runs: the runs whose records were read.
        note: anything that a reader should know, in a sentence.
    """

    effect: float
    low: float
    high: float
    n: int
    p: float = math.nan
    events: int | None = None
    largest_of: tuple[tuple[float, float], ...] = ()
    bounds: tuple[float, float] = ANYTHING
    compared: tuple[tuple[RunSpec, RunSpec], ...] = ()
    runs: tuple[RunSpec | FinetuningSpec, ...] = ()
    note: str = ""

    @property
    def interval(self) -> tuple[float, float]:
        """``low`` and ``high``, moved into ``bounds``."""
        return max(self.low, self.bounds[0]), min(self.high, self.bounds[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Confounder:
    """A control that could explain a claim's effect.

    Attributes:
        name: the control, as the verdict names it.
        measure: gives the claim's evidence with the control in place of the baseline; None if the control's runs were not trained.
    """

    name: str
    measure: Callable[[Grounds], Evidence | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence, number or trend of the paper.

    Attributes:
        key: unique; begins with its artifact's name.
        place: where the paper says it ("Section 6.1", "Table 2", "Figure 6's caption").
        says: the statement, in our words.
        kind: what sort of statement it is.
        rule: how it is judged, in words: what the effect is and where it must lie.
        unit: of the effect; empty for a pure number.
        region: the rule in numbers: the closed range of effects for which the claim holds.
        measure: gives the evidence, from records or from an artifact's table.
        exact: whether it follows from definitions (counts, formulas, how training starts), so that no training changes it.
        configuration: whether it compares the paper's configuration with ours: a difference is then a choice, and refutes nothing.
        paper_only: why only the paper's own scale can show it; empty if smaller scales can.
        confounders: controls that could explain it.
        models: models that it needs beside those of its artifact; a scale that lacks one cannot show it.
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
