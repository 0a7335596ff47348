"""Evidence that claims of several artifacts are made of: printed digits, shares, and lines of tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analyses.claim import CONFIDENCE, Evidence, exactly, over_seeds
from poet.training.spec import RunSpec

#: Regions of a share: every one of them; and of a ratio whose being below 1 is all that is claimed.
ALL = (1.0, 1.0)
BELOW_ONE = (0.0, math.nextafter(1, 0))
#: Bounds of a size or a distance.
SIZE = (0.0, math.inf)
#: A relative change that two digits may not show: half a unit in the second digit of 1.0. What the paper calls "almost
#: negligible", "the same" or "small" of a curve without numbers is read as no more than that.
TWO_DIGITS = (0.0, 0.05)
#: How many exceptions a note names.
NAMED = 4


def as_read(printed: str) -> tuple[float, float]:
    """What a printed number may have been before it was rounded: ``as_read("0.62") == (0.615, 0.625)``."""
    value = Decimal(printed)
    half = Decimal(5).scaleb(value.as_tuple().exponent - 1)
    return float(value - half), float(value + half)


def share_within(values: np.ndarray, region: tuple[float, float]) -> float:
    """The share of values in a closed region; NaN if any is NaN (a run diverged)."""
    return math.nan if np.isnan(values).any() else float(((values >= region[0]) & (values <= region[1])).mean())


def over_seeds_in(
    bounds: tuple[float, float], values: Sequence[float], runs: Sequence[RunSpec] = (), note: str = ""
) -> Evidence:
    """The mean over seeds of a quantity that cannot leave some bounds: its interval ends there."""
    found = over_seeds(values, runs, note)
    return replace(found, low=max(bounds[0], found.low), high=min(bounds[1], found.high))


def share_over_seeds(shares: Sequence[float], runs: Sequence[RunSpec] = (), note: str = "") -> Evidence:
    """The mean over seeds of shares of things that belong together, such as the matrices of one run."""
    return over_seeds_in((0.0, 1.0), shares, runs, note)


def of_line(line: Any, note: str = "") -> Evidence:
    """The mean of independent draws that a table's line has as ``measured``, ``std`` and ``n`` (at least 2)."""
    half = stats.t.ppf((1 + CONFIDENCE) / 2, line.n - 1) * line.std / math.sqrt(line.n)
    mean = line.measured
    return Evidence(effect=mean, low=mean - half, high=mean + half, n=int(line.n), note=note)


def but_for(names: Sequence[str]) -> str:
    """A note that lists what does not fit, the first few by name; empty if there is nothing."""
    names = list(dict.fromkeys(names))
    more = f"; and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"not so: {'; '.join(names[:NAMED])}{more}" if names else ""


def share_agreeing(frame: pd.DataFrame, column: str, what: Sequence[str], runs: Sequence[RunSpec] = ()) -> Evidence:
    """The share of a table's lines that say "yes" in a column; exact. The note lists those that do not.

    Args:
        frame: the lines; at least one.
        column: of "yes" and "no".
        what: columns that name a line.
        runs: see :class:`analyses.claim.Evidence`.
    """
    agree = frame[column] == "yes"
    wrong = frame.loc[~agree, list(what)].fillna("").astype(str).values
    return exactly(float(agree.mean()), runs, but_for([" ".join(filter(None, names)) for names in wrong]), n=len(frame))
