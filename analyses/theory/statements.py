"""The lines of ``results/theory.csv``: statements of the theory, their measurements, and the rule that judges them.

The rule (written before any number was seen). Each measurement comes with an interval: four standard errors either side
for means and variances, the exact (Clopper-Pearson) interval of the same confidence for frequencies, and others that the
line's module states. The factor is four and not two, since nearly two hundred lines are judged. A printed value is ``confirmed`` if
it lies inside the interval, ``refuted`` otherwise. A printed bound is ``confirmed`` if the whole interval
keeps it, ``refuted`` if the whole interval breaks it, ``undecided`` otherwise. A statement that the paper makes
without a number has no ``published``, and only its derived value is judged.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import scipy

#: Half-width of an interval in standard errors, and the confidence that it has for a normal variable.
STANDARD_ERRORS = 4.0
CONFIDENCE = math.erf(STANDARD_ERRORS / math.sqrt(2))
#: fp64 rounding of a few thousand operations on numbers of order one.
ROUNDING = 1e-11

Relation = Literal["=", "<=", ">="]


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured number."""

    value: float  # the number
    low: float  # where its interval begins
    high: float  # and where it ends
    n: int  # draws it comes from
    std: float = math.nan  # spread of a single draw; NaN where there is none

    @classmethod
    def around(cls, value: float, half_width: float, n: int, std: float = math.nan) -> Measured:
        """A number with a symmetric interval, widened by :data:`ROUNDING`."""
        half_width += ROUNDING
        return cls(float(value), float(value - half_width), float(value + half_width), n, float(std))


def mean_of(draws: np.ndarray) -> Measured:
    """Mean of independent draws, (n,)."""
    spread = np.std(draws, ddof=1)
    return Measured.around(np.mean(draws), STANDARD_ERRORS * spread / math.sqrt(len(draws)), len(draws), spread)


def variance_of(draws: np.ndarray) -> Measured:
    """Variance of independent draws, (n,); its standard error from the fourth moment, so not for normal draws alone."""
    deviations = np.square(draws - np.mean(draws))
    error = np.std(deviations) / math.sqrt(len(draws))
    return Measured.around(np.var(draws, ddof=1), STANDARD_ERRORS * error, len(draws), np.std(draws, ddof=1))


def frequency_of(events: np.ndarray) -> Measured:
    """Share of True among independent events, (n,) bool."""
    count, n = int(np.sum(events)), len(events)
    interval = scipy.stats.binomtest(count, n).proportion_ci(CONFIDENCE, "exact")
    share = count / n
    return Measured(share, float(interval.low), float(interval.high), n, math.sqrt(share * (1 - share)))


def verdict(measured: Measured, relation: Relation, value: float) -> str:
    """Judge a stated value or bound by the rule at the top of this file; empty where nothing is stated (NaN)."""
    if math.isnan(value):
        return ""
    if relation == "=":
        return "confirmed" if measured.low <= value <= measured.high else "refuted"
    low, high = measured.low, measured.high
    if relation == ">=":
        low, high, value = -high, -low, -value
    return "confirmed" if high <= value else "refuted" if low > value else "undecided"


def numbers(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The frame with numbers read out of its settings: ``numbers(frame, "m", "b")`` adds columns m and b."""
    found = {name: frame.setting.str.extract(rf"(?:^| ){re.escape(name)}=(-?[\d.]+)")[0].astype(float) for name in names}
    return frame.assign(**found)


def line(
    statement: str, place: str, setting: str, quantity: str, measured: Measured, *, published: float = math.nan,
    relation: Relation = "=", derived: float | None = None, derived_relation: Relation | None = None, unit: str = "",
) -> dict:
    """One line of ``results/theory.csv``: a statement, its place in the paper, a setting, a measurement and the verdicts.

    ``published`` is the value of the printed formula, NaN if none is printed. ``derived`` is that of a derivation where the
    print is wrong or missing, by default the same. The relations say how the measurement should compare with each."""
    derived = published if derived is None else derived
    derived_relation = derived_relation or relation
    return {
        "statement": statement, "place": place, "setting": setting, "quantity": quantity, "relation": relation,
        "published": published, "derived_relation": derived_relation, "derived": derived, "measured": measured.value,
        "low": measured.low, "high": measured.high, "n": measured.n, "std": measured.std, "unit": unit,
        "verdict": verdict(measured, relation, published),
        "derived_verdict": verdict(measured, derived_relation, derived), "scale": "any",
    }
