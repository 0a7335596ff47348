"""Claims about perplexity along training: Section 5.1 and Figures 8 and 26.

Crossings follow the rule of ``analyses.figures.common.dynamics``, but for the curves of each seed. The phases begin and end where
Figure 2 has them. A value at a share of training is that of the nearest evaluation.
"""

import math
import statistics
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from analyses.common.evidence import largest_of, over_seeds
from analyses.common.grid import BASELINE, MODELS, cell_runs
from analyses.common.published import printed_cell
from analyses.figures.common.dynamics import CROSSING, evaluations, overtakes_for_good
from poet.training.spec import RunSpec
from suite.claim import NEGATIVE, POSITIVE, Claim, Evidence
from suite.context import Context

FS, BS, SMALL = "poet-fs-1_2", "poet-bs-b256", "poet-fs-1_8"
#: The value of a crossing that never happens: the end of training, later than any printed crossing.
NEVER = 1.0
#: The share of training at which the speed of convergence is compared.
MIDDLE = 0.5


def log_perplexity_at(curve: pd.Series, share: float, spec: RunSpec) -> float:
    """The logarithm of a run's perplexity at a share of its training, in nats; NaN if it had diverged by then."""
    step = max(1, round(share * spec.steps / spec.evaluate_every)) * spec.evaluate_every
    return math.log(curve.get(min(step, spec.steps), math.nan))


def _falls(context: Context, specs: Sequence[RunSpec], shares: tuple[float, float]) -> np.ndarray:
    """By how much the logarithm of the perplexity falls between two shares of training, by seed."""
    first, last = ([log_perplexity_at(evaluations(context, spec), share, spec) for spec in specs] for share in shares)
    return np.subtract(first, last)


def _crossings(context: Context, model: str) -> Evidence:
    """Where POET FS b=1/2 crosses AdamW, as a share of training, by seed: :data:`NEVER` if it does not, NaN if AdamW diverged."""
    poet, adamw = (cell_runs(context.scale, model, row) for row in (FS, BASELINE))
    curves, baselines = ([evaluations(context, spec) for spec in specs] for specs in (poet, adamw))
    steps = poet[0].steps
    crossed = [overtakes_for_good(*pair, steps) for pair in zip(curves, baselines, strict=True)]
    known = [steps in baseline.index for baseline in baselines]
    shares = [(NEVER if math.isnan(where) else where) if reference else math.nan for where, reference in zip(crossed, known, strict=True)]
    never, below = sum(map(math.isnan, crossed)), crossed.count(0.0)
    note = f"never: {never}, below throughout: {below}, of {len(crossed)} seeds" if never or below else ""
    return over_seeds(shares, (*poet, *adamw), note)


def _slower(context: Context, model: str, shares: tuple[float, float]) -> Evidence:
    """POET's fall of the log perplexity minus AdamW's between two shares of training; the larger one of FS b=1/2 and BS b=256."""
    adamw, *poet = (cell_runs(context.scale, model, row) for row in (BASELINE, FS, BS))
    reference = _falls(context, adamw, shares)
    differences = [_falls(context, specs, shares) - reference for specs in poet]
    return largest_of(differences, [*adamw, *(spec for specs in poet for spec in specs)])


def _slow_start(context: Context) -> Evidence:
    """Log perplexity of FS b=1/8 minus that of FS b=1/2 in the middle of training, mean over models, by seed."""
    found, runs = [], []
    for model in (m for m in MODELS if m in context.scale.models):
        by_row = [cell_runs(context.scale, model, row) for row in (SMALL, FS)]
        small, large = ([log_perplexity_at(evaluations(context, s), MIDDLE, s) for s in specs] for specs in by_row)
        found.append([a - b for a, b in zip(small, large, strict=True)])
        runs += [spec for specs in by_row for spec in specs]
    return over_seeds([statistics.fmean(by_model) for by_model in zip(*found, strict=True)], runs)


def late_crossing(artifact: str, place: str, model: str) -> Claim:
    """The claim that POET is above AdamW until late in training."""
    low, high = (printed_cell("dynamics", end, quantity=CROSSING) for end in ("low", "high"))
    return Claim(
        key=f"{artifact}-crosses-late-{model}", place=place, kind="ordering",
        says=f"POET FS b=1/2 overtakes AdamW for good in the last part of training, here at {model.upper()}.",
        rule="The share of training from which on POET FS b=1/2 is below AdamW to the end, mean over seeds (0: throughout; "
        f"never, also if it diverged: {NEVER:g}; nothing if AdamW diverged): between {low:g} and {high:g}, as read off the figures.",
        unit="share of training", region=(low, high), measure=partial(_crossings, model=model), models=(model,),
    )


def slower_progress(artifact: str, place: str, model: str) -> Claim:
    """The claim that POET improves more slowly than AdamW once the initial drop is over."""
    shares = tuple(printed_cell("figure2", "low", quantity=end) for end in ("end of phase I", "start of phase III"))
    return Claim(
        key=f"{artifact}-slower-after-drop-{model}", place=place, kind="ordering",
        says=f"After an initial rapid drop, POET's perplexity improves more slowly than AdamW's, here in proportion to itself and at {model.upper()}.",
        rule="The fall of the log perplexity in phase II of Figure 2 (evaluations nearest to "
        f"{' and '.join(f'{share:.0%}' for share in shares)} of training), POET's minus AdamW's, paired by seed. The larger "
        "mean difference of FS b=1/2 and BS b=256, with an interval that allows for the choice, is below zero.",
        unit="nats", region=NEGATIVE, measure=partial(_slower, model=model, shares=shares), models=(model,),
    )


SLOW_START = Claim(
    key="figure26-small-budget-slower", place="Section 4", kind="ordering",
    says="With a small b, POET converges more slowly.",
    rule=f"The log perplexity at {MIDDLE:.0%} of training, POET FS b=1/8 minus b=1/2, paired by seed, mean over models: "
    "above zero.",
    unit="nats", region=POSITIVE, measure=_slow_start,
)
