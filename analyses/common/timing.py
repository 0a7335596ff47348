"""Times of calls that are to be compared: measured in turn, and compared round by round.

A shared machine may be slow for some seconds. If each call is timed in a block of its own, such seconds hit one call and not
the other. If calls are timed in turn, they hit both, so the ratio within a round is more reliable than the ratio of two medians.
This module needs numpy alone: the benchmarks use it on machines that have little else.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

#: Measures the seconds that one call takes.
Timer = Callable[[Callable[[], object]], float]


def wall_clock(call: Callable[[], object]) -> float:
    """Seconds of one call, wall-clock."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, 20th and 80th percentile, number and sample standard deviation (NaN for one value) of some values."""

    median: float
    low: float
    high: float
    n: int
    std: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of one value or more."""
        low, median, high = np.quantile(values, (0.2, 0.5, 0.8)).tolist()
        std = statistics.stdev(values) if len(values) > 1 else float("nan")
        return cls(median, low, high, len(values), std)


def in_turn(
    calls: Mapping[str, Callable[[], object]], rounds: int, timer: Timer = wall_clock
) -> dict[str, list[float]]:
    """Seconds of every call by name, timed once per round. Each round starts with the next call, so that no call is always the first."""
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(timer(calls[name]))
    return times


def ratios(times: Sequence[float], reference: Sequence[float]) -> list[float]:
    """times / reference, round by round; their median is the ratio of the two calls.

    Raises:
        ValueError: unequal numbers of rounds.
    """
    return [own / other for own, other in zip(times, reference, strict=True)]
