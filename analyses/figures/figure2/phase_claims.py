"""Claims of Figure 2: what the paper says about the three phases (Section 1, Figure 2, Appendix A).

If the rule of :mod:`analyses.phases` misses a phase, the length of phase II is 0. Other claims that need that phase have the effect NaN,
which leaves them undecided.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from analyses.common.evidence import ALL, BELOW_ONE, exactly, over_seeds, share_in
from analyses.common.published import read_published
from analyses.figures.common.probing import CONE, COSINE, MEASUREMENTS, phases_of, rotations, runs, second_lengths
from analyses.phases import fall_per_step, straightness
from suite.claim import POSITIVE, Claim, Evidence
from suite.context import Context

#: "Almost linearly": a line explains nine tenths of the variance.
ALMOST_LINEAR = (-1.0, -math.sqrt(0.9))
#: v'Rv of the identity, to the rounding of single precision.
ROUNDING = 1e-6


def one_interval(share: float) -> tuple[float, float]:
    """A share of training, plus or minus one interval of the probe there, because phases are located no more precisely."""
    grid = (np.arange(MEASUREMENTS + 1) / MEASUREMENTS) ** 1.5
    after = int(np.searchsorted(grid, share))
    width = float(grid[after] - grid[after - 1])
    return share - width, share + width


def starts_at_one(context: Context) -> Evidence:
    found = rotations(context)
    distance = max(float(np.abs(r[:, 0, COSINE] - 1).max()) for r in found)
    return exactly(distance, runs(context.scale), n=len(found))


def _lengths(context: Context) -> tuple[list[np.ndarray], str]:
    """The length of phase II in each run, 0 where a phase is missing or the cosines only follow the schedule, and a note on such runs."""
    lengths = second_lengths(context)
    missing = sum(length[0] == 0 for length in lengths)
    return lengths, f"a phase is missing, or the cosines only follow the schedule, in {missing} of {len(lengths)} runs" if missing else ""


def all_phases(context: Context) -> Evidence:
    lengths, note = _lengths(context)
    return share_in(POSITIVE, lengths, runs(context.scale), note)


def second_phase(context: Context) -> Evidence:
    lengths, note = _lengths(context)
    return over_seeds([float(length[0]) for length in lengths], runs(context.scale), note)


def end(quantity: str) -> Callable[[Context], Evidence]:
    """The measure of a phase's start or end; ``quantity`` is an attribute of ``analyses.phases.Phases``."""
    return lambda context: over_seeds([getattr(p, quantity) for p in phases_of(context)], runs(context.scale))


def evaluations(context: Context) -> Iterator[tuple[np.ndarray, np.ndarray, float, float, int]]:
    """(steps of the evaluations, their perplexities, and in steps the ends of phases I, II and III) of each run."""
    for spec, phases in zip(runs(context.scale), phases_of(context), strict=True):
        evaluated = context.history(spec).dropna(subset="validation_perplexity")
        ends = phases.first_end * spec.steps, phases.last_start * spec.steps, spec.steps
        yield evaluated.step.to_numpy(), evaluated.validation_perplexity.to_numpy(), *ends


def linear_fall(context: Context) -> Evidence:
    values = [straightness(*curve_and_second) for *curve_and_second, _ in evaluations(context)]
    few = sum(map(math.isnan, values))
    note = f"fewer than three evaluations in phase II, or no phase II: {few} of {len(values)} runs" if few else ""
    return over_seeds(values, runs(context.scale), note, (-1.0, 1.0))


def slows_down(context: Context) -> Evidence:
    ratios = []
    for *curve, first_end, last_start, steps in evaluations(context):
        second, third = fall_per_step(*curve, first_end, last_start), fall_per_step(*curve, last_start, steps)
        ratios.append(third / second if second > 0 else math.nan)
    return over_seeds(ratios, runs(context.scale))


#: Shares of training that were read off Figure 2 or are stated in the text.
PRINTED = {p.quantity: float(p.low) for p in read_published("figure2").itertuples()}
LENGTH = PRINTED["length of phase II, text"]
CLAIMS = (
    Claim(
        key="figure2-cosine-starts-at-one", place="Section 1, phase (1); Section 3.2.3, Step 2", kind="invariance", exact=True,
        says="R and P begin as the identity: the cosine starts at 1.",
        rule="Largest distance of v'Rv from 1 before the first step, over all R and P of all runs: rounding (1e-6).",
        unit="cosine", region=(0.0, ROUNDING), measure=starts_at_one,
    ),
    Claim(
        key="figure2-mean-cosine", place="Section 1; Appendix A.3, Phase I", kind="number",
        says="The cosine falls from 1 to between 0.6 and 0.65 (the paper: consistently over all R and P), here in the mean.",
        rule="v'Rv at the end, mean over all R and P: in that range.",
        unit="cosine", region=CONE,
        measure=lambda context: over_seeds([float(r[:, -1, COSINE].mean()) for r in rotations(context)], runs(context.scale)),
    ),
    Claim(
        key="figure2-three-phases", place="Section 1; Appendix A.3", kind="phase",
        says="Training has three phases: the cosines settle, stay, and hardly move at the end (learning in phases II and III: two claims below).",
        rule="Share of runs in which the rule of analyses/phases.py finds all three phases, and the cosines settle sooner than if they "
        "moved in proportion to the learning rate: all of them.",
        unit="share of runs", region=ALL, measure=all_phases,
    ),
    Claim(
        key="figure2-phase-one-end", place="Figure 2", kind="number",
        says="Phase I ends after about 58,000 of 300,000 steps.",
        rule="Share of training at which phase I ends: the printed one, give or take one interval of the probe.",
        unit="share of training", region=one_interval(PRINTED["end of phase I"]), measure=end("first_end"),
        paper_only="how long the cosines take to settle depends on steps times learning rate, not on the share of training",
    ),
    Claim(
        key="figure2-phase-three-start", place="Figure 2; Appendix A.3, Phase III", kind="number",
        says="Phase III begins after about 233,000 of 300,000 steps, near the end of the learning rate's decay (the paper: it coincides with the decay, which lasts throughout).",
        rule="Share of training at which phase III begins: the printed one, give or take one interval of the probe (the schedule is "
        "the same at every scale).",
        unit="share of training", region=one_interval(PRINTED["start of phase III"]), measure=end("last_start"),
    ),
    Claim(
        key="figure2-phase-two-length", place="Appendix A.3, Phase II", kind="number",
        says="Phase II takes up 80% of the training time.",
        rule="Length of phase II, 0 where a phase is missing or the cosines only follow the schedule: 80%, give or take half a unit "
        "of its first digit. The paper's own Figure 2 lies outside, too (length-of-phase-two in the errata).",
        unit="share of training", region=(LENGTH - 0.05, LENGTH + 0.05), measure=second_phase,
    ),
    Claim(
        key="figure2-linear-fall", place="Section 1, phase (2); Appendix A.3, Phase II", kind="trend",
        says="In phase II validation perplexity goes on falling, almost linearly.",
        rule="Correlation of validation perplexity with the step over the evaluations within phase II (three or more): at most "
        "-0.949, so that a falling line explains nine tenths of the variance.",
        unit="correlation", region=ALMOST_LINEAR, measure=linear_fall,
    ),
    Claim(
        key="figure2-learning-slows", place="Section 1, phase (3); Appendix A.3, Phase III", kind="phase",
        says="In phase III learning slows down (and, in the paper, eventually halts).",
        rule="Fall of validation perplexity a step in phase III over that in phase II: below 1. (So it is in a run that only follows the learning rate.) Without a fall in phase II there is no ratio.",
        unit="ratio", region=(-math.inf, BELOW_ONE[1]), measure=slows_down,
    ),
)
