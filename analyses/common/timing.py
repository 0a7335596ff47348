"""Times that are compared with each other: taken in turn, and compared round by round.

A machine that others use is slow for seconds at a time. Calls that are timed one block after another see different
machines; calls that are timed in turn see the same one, and the ratio of two neighbours is worth more than the ratio
of two medians. Needs numpy alone: the benchmarks use it on machines that have little else.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

#: Seconds that one call takes.
Timer = Callable[[Callable[[], object]], float]


def wall_clock(call: Callable[[], object]) -> float:
    """Seconds of one call, by the clock on the wall."""
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
    """Time every call once a round, beginning each round with the next one: none is always after the same neighbour."""
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
