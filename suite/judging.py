"""The rules of verdicts: scope, result, and Holm's correction.

**Scope** says what a verdict is about. "exact": counts, theorems, transcription, and simulations of printed formulas, which are the same
at every scale. "measured": trained models (or times) at the scale that is named. "paper": trained models at the paper's scale, and
claims that only this scale can show.

**Result** of an exact claim: "confirmed" if the whole 95% interval of the effect lies in the claim's region, "refuted" if all of it lies
outside, else "undecided". Where formulas are simulated, the effect is the share of settings that do not contradict what is printed, and has
no interval. If the claim compares the paper's configuration with ours, "configuration differs" replaces "refuted".

**Result** of a measured claim: the first of these that applies.

1. "not at this scale" if the scale lacks a model, or a control of the claim's kind failed or was not measured
   (:mod:`suite.fitness`), or seeds scatter too much for a difference that would otherwise be decided.
2. "undecided" if the interval crosses an edge of the region. If all seeds agree, the interval has no width and the sign test decides
   instead, which needs six seeds. Discrete outcomes have no interval: Kendall's tau has a permutation p-value, and a
   share of independent events a binomial one.
3. "not at this scale" if a shorter run cannot tell: a run that does not diverge could still diverge later.
4. For an effect inside the region, measured again with a control in place of the baseline: "not at this scale" if the control was not measured,
   "undecided" if it decides nothing. Such a control is another explanation of a lead. Where there is none, there is nothing to explain.
5. "undecided" if the p-value, corrected by Holm's method for all tested claims of the same artifact, is above 5%.
6. "confounded" if the effect is decidedly outside with such a control (at 5%, without correction), and the note names the control.
7. "same direction" or "opposite direction".

Claims of scope "paper" take the same steps without the controls of :mod:`suite.fitness` and without step 3. Their results are "reproduced"
and "contradicted", which no other scope may say of a trained model.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from suite.artifact import Artifact
from suite.claim import Claim, Evidence
from suite.context import Context
from suite.fitness import LITTLE_SCATTER, NEEDS, Reading, readings, scatter_passes
from suite.grounds import Grounds, subject_of
from suite.statistics import CONFIDENCE, agreement_p, holm, interval_p, share_p, t_quantile

Scope = Literal["exact", "measured", "paper"]
Result = Literal[
    "confirmed", "refuted", "configuration differs",
    "reproduced", "contradicted",
    "same direction", "opposite direction", "confounded", "undecided", "not at this scale",
]  # fmt: skip
RESULT_NAMES: tuple[str, ...] = get_args(Result)
Side = Literal["inside", "outside", "neither"]
#: Results of each scope for an effect inside and outside of the claim's region.
WORDS: dict[Scope, dict[Side, Result]] = {
    "exact": {"inside": "confirmed", "outside": "refuted"},
    "measured": {"inside": "same direction", "outside": "opposite direction"},
    "paper": {"inside": "reproduced", "outside": "contradicted"},
}
#: The side of the region that runs shorter than the paper's cannot show, by the kind of the claim.
SHORTER_CANNOT: dict[str, Side] = {"divergence": "outside", "convergence": "inside"}
#: Stands beside every count of results.
LEANING = (
    "The counts lean against the paper: a claim about all matrices or all seeds can be refuted by an interval, while three seeds that all agree with it decide nothing."
)
LEVEL = 1 - CONFIDENCE
NOTHING = Evidence(effect=math.nan, low=math.nan, high=math.nan, n=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on a claim.

    Attributes:
        scope, result: see the top of this file.
        p: two-sided p-value of the side that the effect is on; NaN for exact claims, and where nothing is tested.
        holm_p: ``p`` after Holm's correction for the tested claims of the artifact.
        fitness: how the controls that the claim needs came out; empty if it needs none.
        note: the reason, in a sentence.
        pending: the result if the corrected p-value still decides; empty after the correction, or if there is nothing to correct.
    """

    scope: Scope
    result: Result
    p: float = math.nan
    holm_p: float = math.nan
    fitness: str = ""
    note: str = ""
    pending: Result | Literal[""] = ""


def scope_of(claim: Claim, artifact: Artifact, scale: str) -> Scope:
    """The scope of a verdict on a claim at a scale."""
    if claim.exact or artifact.scale_free:
        return "exact"
    return "paper" if scale == "paper" or claim.paper_only else "measured"


def side_of(evidence: Evidence, region: tuple[float, float]) -> Side:
    """The side of the region on which the whole interval of an effect lies. Evidence with its own p-value is judged by that. Regions are closed."""
    if not math.isnan(evidence.p):
        side, p = side_and_p(evidence, region)
        return side if p <= LEVEL else "neither"
    if any(map(math.isnan, (evidence.effect, evidence.low, evidence.high))):
        return "neither"
    low, high = evidence.interval
    if region[0] <= low and high <= region[1]:
        return "inside"
    return "outside" if high < region[0] or low > region[1] else "neither"


def side_and_p(evidence: Evidence, region: tuple[float, float]) -> tuple[Side, float]:
    """The side that an effect of trained models is on, and its two-sided p-value; ("neither", NaN) if nothing can be tested, ("neither", 1) if
    the test has no value, as after a run diverged: it counts in Holm's correction, so that results do not decide how many tests there are.

    An effect with its own p-value (a permutation) was tested against zero. It is "outside" only if the region lies wholly on
    one side of zero, and the effect does not lie on that side.
    """
    if evidence.n < 2:
        return "neither", math.nan
    if math.isnan(evidence.effect):
        return "neither", 1.0
    within = region[0] <= evidence.effect <= region[1]
    if not math.isnan(evidence.p):
        beyond = evidence.effect <= 0 if region[0] > 0 else evidence.effect >= 0 if region[1] < 0 else False
        return ("inside" if within else "outside" if beyond else "neither"), evidence.p
    if math.isnan(evidence.low + evidence.high) or math.isinf(evidence.low) or math.isinf(evidence.high):
        return "neither", math.nan
    side: Side = "inside" if within else "outside"
    if evidence.low == evidence.high:
        return side, agreement_p(evidence.n)
    nearest = max((_edge_p(evidence, edge) for edge in _edges(evidence, region)), default=0.0)
    return side, nearest


def judge(claim: Claim, artifact: Artifact, evidence: Evidence, context: Context, grounds: Grounds) -> Verdict:
    """The verdict on a claim before Holm's correction, which :func:`corrected` makes."""
    scope = scope_of(claim, artifact, context.scale.name)
    if scope == "exact":
        return _exact(claim, evidence)
    if context.scale.lacking and not claim.models:
        return Verdict(scope=scope, result="not at this scale", note=context.scale.lacking)  # the claim is about all models of the scale
    controls = readings(grounds, subject_of(evidence.runs, evidence.compared), NEEDS[claim.kind]) if scope == "measured" else {}
    fitness = summary(controls)
    if any(reading.outcome != "passed" for reading in controls.values()):
        return Verdict(scope=scope, result="not at this scale", fitness=fitness, note=why_not(controls))
    side, p = side_and_p(evidence, claim.region)
    found = Verdict(scope=scope, result="undecided", p=p, fitness=fitness)
    if side == "neither" or p > LEVEL or math.isnan(p):
        return replace(found, note=_undecided(evidence, side, p))
    if scope == "measured" and SHORTER_CANNOT.get(claim.kind) == side:
        return replace(found, result="not at this scale", note=_shorter(evidence))
    if scope == "measured" and LITTLE_SCATTER in NEEDS[claim.kind] and not _steady(evidence, claim.region):
        note = f"control failed: {LITTLE_SCATTER}"
        return replace(found, result="not at this scale", fitness=summary({**controls, LITTLE_SCATTER: Reading("failed", "")}), note=note)
    pending = WORDS[scope][side]
    for confounder in claim.confounders if side == "inside" else ():
        control = confounder.measure(grounds)
        if control is None:
            return replace(found, result="not at this scale", note=f"control not measured: {confounder.name}")
        other, other_p = side_and_p(control, claim.region)
        if other == "inside" and other_p <= LEVEL:
            continue
        said = "a run diverged" if math.isnan(control.effect) else f"the effect is {control.effect:.3g} ({control.low:.3g} to {control.high:.3g})"
        if other == "outside" and other_p <= LEVEL:
            return replace(found, pending="confounded", note=f"{confounder.name} explains it: with it {said}")
        return replace(found, note=f"control inconclusive: with {confounder.name} {said}")
    return replace(found, pending=pending)


def corrected(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts of one artifact after Holm's correction over those that were tested."""
    places = [i for i, verdict in enumerate(verdicts) if not math.isnan(verdict.p)]
    done = list(verdicts)
    for place, p in zip(places, holm([verdicts[i].p for i in places]), strict=True):
        verdict = replace(verdicts[place], holm_p=p)
        if verdict.pending and p <= LEVEL:
            verdict = replace(verdict, result=verdict.pending)
        elif verdict.pending:
            verdict = replace(verdict, note=f"p = {verdict.p:.2g} alone, {p:.2g} among the {len(places)} claims of its artifact that were tested")
        done[place] = replace(verdict, pending="")
    return done


def tally(results: Iterable[str]) -> str:
    """The number of each result, in words and in the order of :data:`RESULT_NAMES`."""
    counts = Counter(results)
    return ", ".join(f"{counts[result]} {result}" for result in RESULT_NAMES if counts[result])


def summary(controls: dict[str, Reading]) -> str:
    """A table cell on controls: the names of those that did not pass, or "passed"; empty without controls."""
    groups = {outcome: [name for name, found in controls.items() if found.outcome == outcome] for outcome in ("failed", "not measured")}
    said = "; ".join(f"{outcome}: {', '.join(names)}" for outcome, names in groups.items() if names)
    return said or ("passed" if controls else "")


def why_not(controls: dict[str, Reading]) -> str:
    """A note with the first control that failed, or else the first that was not measured; empty if all passed."""
    for outcome, words in (("failed", "control failed"), ("not measured", "control not measured")):
        for name, reading in controls.items():
            if reading.outcome == outcome:
                return f"{words}: {name}"
    return ""


def _exact(claim: Claim, evidence: Evidence) -> Verdict:
    side = side_of(evidence, claim.region)
    if side == "neither":
        return Verdict(scope="exact", result="undecided")
    differs = side == "outside" and claim.configuration
    return Verdict(scope="exact", result="configuration differs" if differs else WORDS["exact"][side])


def _steady(evidence: Evidence, region: tuple[float, float]) -> bool:
    """Whether seeds scatter little beside the effect's distance from the nearest end of its region."""
    edges = _edges(evidence, region)
    # A permutation's p-value comes from no scatter, the sign test decides without one, and a region without an end
    # holds every effect.
    if not math.isnan(evidence.p) or evidence.low == evidence.high or not edges:
        return True
    edge = min(edges, key=lambda edge: abs(evidence.effect - edge))
    parts = evidence.largest_of or ((evidence.effect, _half(evidence, edge)),)
    above = [(mean, half) for mean, half in parts if mean > edge]
    steady = (scatter_passes(half / t_quantile(evidence.n) * math.sqrt(evidence.n), mean - edge) for mean, half in above or parts)
    return any(steady) if above else all(steady)  # one mean above the edge decides; below it, all of them do


def _edges(evidence: Evidence, region: tuple[float, float]) -> list[float]:
    """The ends of a region that an effect can cross: finite ones inside the effect's bounds."""
    ends = [region[0]] * (region[0] > evidence.bounds[0]) + [region[1]] * (region[1] < evidence.bounds[1])
    return [end for end in ends if math.isfinite(end)]


def _half(evidence: Evidence, edge: float) -> float:
    """The distance from an effect to the end of its interval on the side of an edge."""
    return evidence.effect - evidence.low if edge < evidence.effect else evidence.high - evidence.effect


def _edge_p(evidence: Evidence, edge: float) -> float:
    """The p-value of an effect at an edge: of a share of events by the binomial law, else by its interval. For the largest of several means it is the largest p-value if all means lie below the edge. If some
    lie above, it is the smallest p-value of these, times the number of means (Bonferroni)."""
    if evidence.events is not None:
        return share_p(evidence.events, evidence.n, edge)
    if not evidence.largest_of:
        return interval_p(abs(evidence.effect - edge), _half(evidence, edge), evidence.n)
    parts = [(mean, interval_p(abs(mean - edge), half, evidence.n) if half else agreement_p(evidence.n)) for mean, half in evidence.largest_of]
    above = [p for mean, p in parts if mean > edge]
    return min(1.0, len(parts) * min(above)) if above else max(p for _, p in parts)


def _undecided(evidence: Evidence, side: Side, p: float) -> str:
    if math.isnan(evidence.effect):
        return evidence.note
    if evidence.n < 2 and math.isnan(p):
        return "one seed: no interval"
    if evidence.low == evidence.high:
        agree = "where the claim holds" if side == "inside" else "elsewhere"
        return f"{evidence.n} of {evidence.n} seeds lie {agree}, which has p = {p:.2g}"
    return ""


def _shorter(evidence: Evidence) -> str:
    steps = max((spec.steps for spec in evidence.runs), default=0)
    return f"{steps:,} steps cannot show how the paper's longer training ends" if steps else "the paper's training is longer"
