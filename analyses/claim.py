"""A claim of the paper that can be checked, what was measured about it, and the rule that judges it.

An artifact lists its claims in its own file, each with a rule in words and in numbers: ``region``, where the effect must lie
for the claim to hold. The rule of every verdict: the claim is ``reproduced`` if the whole 95% interval of the effect lies
inside the region, ``contradicted`` if all of it lies outside, ``inconclusive`` otherwise (one seed has an interval without
end). What a scale cannot show is ``not at this scale``, with the reason. About one in twenty intervals misses by chance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from scipy import stats

from poet.training.spec import RunSpec

if TYPE_CHECKING:
    from analyses.artifact import Context

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


def judge(evidence: Evidence, region: tuple[float, float]) -> Verdict:
    """The verdict on an effect by the rule at the top of this file."""
    if any(map(math.isnan, (evidence.effect, evidence.low, evidence.high))):
        return "inconclusive"
    if region[0] <= evidence.low and evidence.high <= region[1]:
        return "reproduced"
    return "contradicted" if evidence.high < region[0] or evidence.low > region[1] else "inconclusive"


def paired_interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """Mean of independent numbers (or paired differences) with its 95% t-interval; without end for a single one."""
    mean = statistics.fmean(differences)
    if len(differences) < 2:
        return mean, -math.inf, math.inf
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(differences) - 1) * stats.sem(differences)
    return mean, mean - half, mean + half


def over_seeds(values: Sequence[float], runs: Sequence[RunSpec] = (), note: str = "", null: float = math.nan) -> Evidence:
    """The mean over seeds.

    Args:
        values: one for each seed; any NaN makes the effect NaN.
        runs, note: see :class:`Evidence`.
        null: the effect that ``p`` is for (a t-test); NaN for none.
    """
    effect, low, high = paired_interval(values)
    spread = statistics.stdev(values) if len(values) > 1 else math.nan
    p = float(stats.ttest_1samp(values, null).pvalue) if spread > 0 and not math.isnan(null) else math.nan
    return Evidence(effect=effect, low=low, high=high, n=len(values), p=p, runs=tuple(runs), note=note)


def exactly(value: float, runs: Sequence[RunSpec] = (), note: str = "", n: int = 1) -> Evidence:
    """A count, or a number that is the same whenever it is computed."""
    return Evidence(effect=value, low=value, high=value, n=n, runs=tuple(runs), note=note)


def share_of(events: Sequence[bool], runs: Sequence[RunSpec] = (), note: str = "") -> Evidence:
    """The share of independent events that happened, with its exact (Clopper-Pearson) interval."""
    interval = stats.binomtest(sum(events), len(events)).proportion_ci(CONFIDENCE, "exact")
    share = sum(events) / len(events)
    return Evidence(effect=share, low=interval.low, high=interval.high, n=len(events), runs=tuple(runs), note=note)


def perplexities(context: Context, specs: Sequence[RunSpec]) -> list[float]:
    """Final validation perplexity of runs; NaN where one diverged."""
    return [context.record(spec)["validation_perplexity"] for spec in specs]


def perplexity_difference(context: Context, ours: Sequence[RunSpec], theirs: Sequence[RunSpec]) -> Evidence:
    """Mean difference of final perplexities, ours minus theirs, paired by seed.

    Raises:
        ValueError: the two do not have the same seeds in the same order.
    """
    if [spec.seed for spec in ours] != [spec.seed for spec in theirs]:
        raise ValueError("runs are compared by seed: give both sides the same seeds")
    pairs = zip(perplexities(context, ours), perplexities(context, theirs), strict=True)
    differences = [a - b for a, b in pairs]
    gone = sum(map(math.isnan, differences))
    note = f"diverged: {gone} of {len(differences)} pairs" if gone else ""
    return over_seeds(differences, (*ours, *theirs), note, null=0.0)


def rank_agreement(
    context: Context, published: Sequence[float], cells: Sequence[Sequence[RunSpec]]
) -> Evidence:
    """Kendall's tau between printed and measured perplexities, one for each seed; what did not converge comes last.

    Args:
        context: for the records.
        published: printed perplexities; NaN for "not converged".
        cells: for each of them its runs, by seed in the same order.
    """
    printed = [math.inf if math.isnan(value) else value for value in published]
    by_seed = zip(*(perplexities(context, specs) for specs in cells), strict=True)
    ranks = stats.rankdata(printed)
    taus = [
        float(stats.kendalltau(ranks, stats.rankdata([math.inf if math.isnan(v) else v for v in values])).statistic)
        for values in by_seed
    ]
    found = over_seeds(taus, [spec for specs in cells for spec in specs], f"{len(printed)} rows", null=0.0)
    return Evidence(
        effect=found.effect, low=max(-1.0, found.low), high=min(1.0, found.high), n=found.n, p=found.p, runs=found.runs, note=found.note
    )
