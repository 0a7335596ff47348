"""The three phases of POET's training (Figure 2), found by a rule that can fail. All of it but its last condition was written before any run.

c(t) is the mean of v'Rv over all R and P (``analyses.figures.common.probing``).

- Phase I (conical shell searching) ends at the first measured step after which c stays close to its final value: within a tenth
  of its total change. If c changes by less than 0.05 in all, no shell was searched and there are no phases.
- Phase III (final adjusting) begins at the first measured step after which the single cosines move slowly: the mean over R and P
  of |change of v'Rv| per step stays below a quarter of its average over training. If the movement is proportional to the learning
  rate, it falls below a quarter at 78% of a cosine schedule, where the paper's figure has the phase. If even the last interval is
  not that slow, the phase is missing.
- Phase II (stable learning) lies between the two. If phase III begins before phase I ends, phase II is missing.

A cosine that only moves in proportion to the learning rate has a phase I and a phase III by these rules, too: it stays within a tenth
of its change from 60% of a cosine schedule on, and slows at 78%. So a run in which the cosines settle no sooner than that shows no
three phases (:func:`length_of_second`). This last condition was added on 2026-11-28, with the results of mini and night scale known.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from analyses.common.plotting import Axes
from poet.training.schedule import cosine
from poet.training.spec import RunSpec

SETTLED, LEAST_CHANGE, SLOW = 0.1, 0.05, 0.25


@dataclass(frozen=True, slots=True)
class Phases:
    """The borders between the phases, as shares of training."""

    first_end: float  # end of phase I; NaN if there are no phases
    last_start: float  # start of phase III; NaN if there is none

    @property
    def second(self) -> float:
        """Length of phase II; 0 if it is missing, NaN if one of its ends is NaN."""
        return float(np.maximum(0, self.last_start - self.first_end))

    def __str__(self) -> str:
        """A sentence for a caption on the phases that were found."""
        if math.isnan(self.first_end):
            return "The rule of analyses/phases.py finds no phases."
        missing = "III" if math.isnan(self.last_start) else "" if self.second else "II"
        return "Shaded: the three phases, as the rule in analyses/phases.py finds them" + (f", which finds no phase {missing}." if missing else ".")


def find_phases(steps: np.ndarray, cosines: np.ndarray) -> Phases:
    """The phases of a run, by the rule at the top of this file.

    Steps (s,) go from 0 to the end. Cosines (matrices, s) are NaN after a run diverged; such a run has no phases."""
    mean, moves = cosines.mean(0), np.abs(np.diff(cosines)).mean(0)
    change = abs(mean[0] - mean[-1])
    if not change >= LEAST_CHANGE:
        return Phases(math.nan, math.nan)
    first = _holds_from(np.abs(mean - mean[-1]) <= SETTLED * change)
    last = _holds_from(moves / np.diff(steps) < SLOW * moves.sum() / steps[-1])
    return Phases(steps[first] / steps[-1], steps[last] / steps[-1] if last < len(moves) else math.nan)


def drift(steps: np.ndarray, spec: RunSpec) -> np.ndarray:
    """A cosine that moves from 1 to 0 in proportion to the run's learning rate, at the steps (s,): (1, s)."""
    factors = [cosine(step, spec.steps, minimum_ratio=spec.minimum_lr_ratio, warmup_steps=spec.warmup_steps) for step in range(spec.steps)]
    moved = np.concatenate([[0.0], np.cumsum(factors)])
    return (1 - moved / moved[-1])[None, steps]


def length_of_second(steps: np.ndarray, cosines: np.ndarray, null: np.ndarray) -> float:
    """Length of phase II as a share of training, NaN if the run diverged.

    It is 0 if any of the three phases is missing, or if phase I ends no sooner than that of ``null`` (:func:`drift`).
    Other arguments as in :func:`find_phases`.
    """
    if np.isnan(cosines).any():
        return math.nan
    found = find_phases(steps, cosines)
    return float(np.nan_to_num(found.second)) if found.first_end < find_phases(steps, null).first_end else 0.0


def _holds_from(condition: np.ndarray) -> int:
    """The first index from which a condition holds to the end; the length of the array if it fails at the last index."""
    failures = np.flatnonzero(~condition)
    return int(failures[-1]) + 1 if len(failures) else 0


def fall_per_step(steps: np.ndarray, perplexities: np.ndarray, start: float, end: float) -> float:
    """Mean fall of perplexity per step between two steps, with linear interpolation between the evaluations (e,).

    Steps before the first evaluation are left out; NaN if none are left."""
    start = max(start, steps[0])
    if not end > start:
        return math.nan
    first, last = np.interp((start, end), steps, perplexities)
    return float((first - last) / (end - start))


def straightness(steps: np.ndarray, perplexities: np.ndarray, start: float, end: float) -> float:
    """Pearson correlation of perplexity with the step, between two steps: -1 on a falling line; NaN for fewer than three
    evaluations between them. Arguments as in :func:`fall_per_step`."""
    inside = (steps >= start) & (steps <= end)
    return float(np.corrcoef(steps[inside], perplexities[inside])[0, 1]) if inside.sum() >= 3 else math.nan


def mark_phases(axes: Iterable[Axes], phases: Phases, steps: int) -> None:
    """Shade the phases that were found, and name them above the panels."""
    if math.isnan(phases.first_end):
        return
    last = 1.0 if math.isnan(phases.last_start) else max(phases.first_end, phases.last_start)
    ends = (0.0, phases.first_end, last, 1.0)
    for axis in axes:
        for name, start, stop, shade in zip(("I", "II", "III"), ends, ends[1:], ("0.88", "0.95", "0.88"), strict=False):
            if stop > start:
                axis.axvspan(start * steps, stop * steps, color=shade, zorder=0)
                middle = (start + stop) / 2 * steps
                axis.text(middle, 1.01, name, transform=axis.get_xaxis_transform(), ha="center", va="bottom")
