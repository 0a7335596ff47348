"""A claim of the paper that can be checked, what was measured about it, and the rule that judges it.

An artifact lists its claims in its own file, each with a rule in words and in numbers: ``region``, where the effect must lie
for the claim to hold. The rule of every verdict: the claim is ``reproduced`` if the whole 95% interval of the effect lies
inside the region, ``contradicted`` if all of it lies outside, ``inconclusive`` otherwise (one seed has an interval without
end). Where all seeds give the same number the interval has no width: more seeds might still differ. What a scale cannot show is ``not at this scale``, with the reason. About one in twenty intervals misses by chance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import stats

from poet.training.spec import RunSpec

if TYPE_CHECKING:
    from analyses.artifact import Artifact, Context
    from analyses.scale import Scale

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


def unshown(artifact: Artifact, claim: Claim, scale: Scale) -> str:
    """Why a scale cannot show a claim; empty if it can."""
    missing = [model for model in dict.fromkeys((*artifact.models, *claim.models)) if model not in scale.models]
    if missing:
        return f"the scale has no model {', '.join(missing)}"
    if scale.name in UNJUDGED_SCALES and not artifact.scale_free:
        return f"{scale.name} checks the plumbing alone"
    return claim.paper_only if scale.name != "paper" else ""


def judge(evidence: Evidence, region: tuple[float, float]) -> Verdict:
    """The verdict on an effect by the rule at the top of this file."""
    if any(map(math.isnan, (evidence.effect, evidence.low, evidence.high))):
        return "inconclusive"
    if region[0] <= evidence.low and evidence.high <= region[1]:
        return "reproduced"
    return "contradicted" if evidence.high < region[0] or evidence.low > region[1] else "inconclusive"


def paired_interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Mean of independent numbers (or paired differences) with its t-interval; without end for a single one."""
    mean = statistics.fmean(differences)
    if len(differences) < 2:
        return mean, -math.inf, math.inf
    half = stats.t.ppf((1 + confidence) / 2, len(differences) - 1) * stats.sem(differences)
    return mean, mean - half, mean + half


def over_seeds(values: Sequence[float], runs: Sequence[RunSpec] = (), note: str = "", null: float = math.nan) -> Evidence:
    """The mean over seeds.

    Args:
        values: one for each seed; any NaN makes the effect NaN.
        runs, note: see :class:`Evidence`.
        null: the effect that ``p`` is for (a t-test); NaN for none.
    """
    effect, low, high = paired_interval(values)
    tested = len(set(values)) > 1 and not math.isnan(effect + null)
    p = float(stats.ttest_1samp(values, null).pvalue) if tested else math.nan
    return Evidence(effect=effect, low=low, high=high, n=len(values), p=p, runs=tuple(runs), note=note)


def largest_of(comparisons: Sequence[Sequence[float]], runs: Sequence[RunSpec] = (), note: str = "") -> Evidence:
    """The largest of several mean differences: a claim that all of them are negative stands or falls with it.

    Its interval has 95% for the largest of the true means, whichever that is. The upper end is the largest of their upper
    ends: that mean's own is one of them. The lower end is the largest of their lower ends, each with its part of the error
    (Bonferroni): any one may have come out too high. Of one comparison it is the plain interval.

    Args:
        comparisons: of each the differences, one for each seed; any NaN makes the effect NaN.
        runs, note: see :class:`Evidence`.
    """
    plain = np.array([paired_interval(values) for values in comparisons])
    strict = np.array([paired_interval(values, 1 - (1 - CONFIDENCE) / len(comparisons)) for values in comparisons])
    effect, low, high = float(plain[:, 0].max()), float(strict[:, 1].max()), float(plain[:, 2].max())
    return Evidence(effect=effect, low=low, high=high, n=len(comparisons[0]), runs=tuple(runs), note=note)


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


def paired_differences(context: Context, ours: Sequence[RunSpec], theirs: Sequence[RunSpec]) -> list[float]:
    """Differences of final perplexities, ours minus theirs, by seed; NaN where one of the two diverged.

    Raises:
        ValueError: the two do not have the same seeds in the same order.
    """
    if [spec.seed for spec in ours] != [spec.seed for spec in theirs]:
        raise ValueError("runs are compared by seed: give both sides the same seeds")
    return [a - b for a, b in zip(perplexities(context, ours), perplexities(context, theirs), strict=True)]


def _diverged(differences: Sequence[float]) -> str:
    gone = sum(map(math.isnan, differences))
    return f"diverged: {gone} of {len(differences)} pairs" if gone else ""


def perplexity_difference(context: Context, ours: Sequence[RunSpec], theirs: Sequence[RunSpec]) -> Evidence:
    """Mean difference of final perplexities, ours minus theirs, paired by seed; see :func:`paired_differences`."""
    differences = paired_differences(context, ours, theirs)
    return over_seeds(differences, (*ours, *theirs), _diverged(differences), null=0.0)


def largest_difference(context: Context, pairs: Sequence[tuple[Sequence[RunSpec], Sequence[RunSpec]]]) -> Evidence:
    """The largest of the mean differences of several (ours, theirs): see :func:`largest_of`; the note says whose it is.

    Of one pair it is :func:`perplexity_difference`.
    """
    if len(pairs) == 1:
        return perplexity_difference(context, *pairs[0])
    differences = [paired_differences(context, ours, theirs) for ours, theirs in pairs]
    note = _diverged([value for values in differences for value in values])
    if not note:
        (ours, *_), (theirs, *_) = pairs[int(np.argmax([statistics.fmean(values) for values in differences]))]
        note = f"the largest of {len(pairs)}: {ours.model}/{ours.variant} minus {theirs.model}/{theirs.variant}"
    return largest_of(differences, list(dict.fromkeys(spec for pair in pairs for side in pair for spec in side)), note)


def rank_correlation(
    groups: Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]], runs: Sequence[RunSpec] = (), note: str = ""
) -> Evidence:
    """Kendall's tau between given numbers and measured ones, one for each seed, the mean over groups.

    Args:
        groups: of each the given numbers, and for each of these the measured ones by seed. NaN (what did not converge)
            comes last on either side.
        runs, note: see :class:`Evidence`.
    """
    taus = [
        [_kendall(numbers, values) for values in zip(*by_setting, strict=True)] for numbers, by_setting in groups
    ]
    found = over_seeds([statistics.fmean(by_group) for by_group in zip(*taus, strict=True)], runs, note, null=0.0)
    return replace(found, low=max(-1.0, found.low), high=min(1.0, found.high))


def _kendall(numbers: Sequence[float], values: Sequence[float]) -> float:
    ranks = [stats.rankdata([math.inf if math.isnan(v) else v for v in side]) for side in (numbers, values)]
    return float(stats.kendalltau(*ranks).statistic)


def rank_agreement(context: Context, published: Sequence[float], cells: Sequence[Sequence[RunSpec]]) -> Evidence:
    """Kendall's tau between printed and measured perplexities; see :func:`rank_correlation`.

    Args:
        context: for the records.
        published: printed perplexities; NaN for "not converged".
        cells: for each of them its runs, by seed in the same order.
    """
    measured = [perplexities(context, specs) for specs in cells]
    return rank_correlation([(published, measured)], [s for specs in cells for s in specs], f"{len(cells)} rows")


def with_interval(evidence: Evidence) -> str:
    """An effect with its interval, for a sentence: ``"0.33 (95% interval -0.20 to 0.87, 3 seeds)"``."""
    if evidence.n < 2:
        return f"{evidence.effect:.2f} (one seed: no interval)"
    return f"{evidence.effect:.2f} (95% interval {evidence.low:.2f} to {evidence.high:.2f}, {evidence.n} seeds)"
