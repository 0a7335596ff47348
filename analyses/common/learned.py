"""Whether finetuning taught a model anything, and claims over what it did teach: Tables 4 and 12."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from analyses.common.evidence import largest_of
from suite.claim import Evidence

#: How many standard deviations over seeds above the baseline count as learned. Fixed before any run.
LEARNED = 2.0


def is_learned(values: Sequence[float], baseline: float) -> bool:
    """Whether the mean over seeds is above a baseline by more than :data:`LEARNED` standard deviations; never for one seed, or one that diverged."""
    if len(values) < 2 or any(map(math.isnan, values)):
        return False
    return statistics.fmean(values) - baseline > LEARNED * statistics.stdev(values)


def judged_orders(frame: pd.DataFrame, column: str, baseline: str) -> str:
    """A sentence: on which values of a column some cell has learned, so that orders are judged there."""
    able = [value for value, part in frame.groupby(column) if (part.learned == "yes").any()]
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
    return replace(found, high=greatest, p=found.p if found.effect > 0 else 1.0)


def undecided(note: str) -> Evidence:
    """Nothing was measured that a claim could be judged by."""
    return Evidence(effect=math.nan, low=math.nan, high=math.nan, n=0, note=note)
