"""Whether finetuning taught a model anything, and claims over what it did teach: Tables 4 and 12."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from analyses.common.evidence import largest_of
from suite.claim import Evidence

#: How many standard deviations above the baseline count as learned. Fixed before any run. Since 2026-11-23 they are of seeds and of
#: validation examples together; before, of seeds alone.
LEARNED = 2.0


def is_learned(values: Sequence[float], baseline: float, error: float) -> bool:
    """Whether the mean over seeds is above a baseline by more than :data:`LEARNED` standard deviations; never for one seed, or one that diverged.

    Args:
        values: one for each seed.
        baseline: what is reached without learning.
        error: the standard error of the metric over the validation examples, which all seeds share.
    """
    if len(values) < 2 or any(map(math.isnan, values)):
        return False
    return statistics.fmean(values) - baseline > LEARNED * math.hypot(statistics.stdev(values), error)


def error_over_examples(metric: str, baseline: float, examples: int) -> float:
    """The standard error of a metric that learned nothing, over some validation examples.

    Args:
        metric: "accuracy"; "rouge" (in percent), of which it is the largest that scores with such a mean can have; any other is a correlation.
        baseline: the metric without learning.
        examples: how many there are.
    """
    top = {"accuracy": 1.0, "rouge": 100.0}.get(metric)
    return math.sqrt((baseline * (top - baseline) if top else 1.0) / examples)


def judged_orders(frame: pd.DataFrame, column: str, baseline: str) -> str:
    """A sentence: on which values of a column some cell has learned at a rate inside what was tried, so that orders are judged there."""
    usable = frame[(frame.learned == "yes") & (frame["at_grid_end"] == "" if "at_grid_end" in frame else True)]
    able = sorted(set(usable[column]))
    if not able:
        return f"**No order is judged**: on no {column} is any cell above {baseline} by more than its scatter."
    return f"Orders are judged on each {column} where some cell is above {baseline} by more than its scatter: {', '.join(able)}."


def all_lower(compared: Sequence[Sequence[float]], left: int, greatest: float, why: str) -> Evidence:
    """A claim that several differences are all negative, of which some could not be compared.

    Args:
        compared: of each comparison the differences, one for each seed.
        left: how many were left out.
        greatest: no difference is larger.
        why: they were left out.
    """
    if not compared:
        return undecided("nothing was learned that can be compared")
    if not left:
        return largest_of(compared)
    # The claim is of all: one comparison against it decides, but those left out may be anything.
    found = largest_of(compared, note=f"{left} of {left + len(compared)} comparisons left out: {why}")
    return replace(found, high=greatest, largest_of=found.largest_of if found.effect > 0 else ())


def undecided(note: str) -> Evidence:
    """Nothing was measured that a claim could be judged by."""
    return Evidence(effect=math.nan, low=math.nan, high=math.nan, n=0, note=note)
