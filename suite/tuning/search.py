"""The search of the protocol: which points of the grid to try next, a function of the known results alone."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from suite.tuning.protocol import Point

State = Literal["waiting", "searching", "finished", "censored"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The state of a search.

    Attributes:
        state: "waiting" for its start, "searching" while trials are missing, "finished" if all neighbours of the best point were tried, else "censored".
        tried: the points with known values that the search used, in the order in which it asked for them.
        next: the points to try now; empty unless searching.
        best: the best point that did not diverge; None if there is none.
        open_sides: (rate's index, -1 or 1) for each neighbour of the best point that was not tried.
    """

    state: State
    tried: tuple[Point, ...]
    next: tuple[Point, ...]
    best: Point | None
    open_sides: tuple[tuple[int, int], ...]


#: The decision of a search whose start is not known yet.
WAITING = Decision("waiting", (), (), None, ())


def search(start: Point, known: Mapping[Point, float], trials: int, at_most: int) -> Decision:
    """Replay the search from its start over the known values.

    The order in which trials ended does not matter: the search waits for all points that are equally near to the best.

    Args:
        known: values by point, the lowest is best (perplexities); NaN if the run diverged. Other points than the search's are ignored.
        trials: number of points that every search tries.
        at_most: most points of a search, which goes on after ``trials`` while the best point has an untried neighbour, or all diverged.

    Returns:
        The decision; ``next`` has the points that the search asks for and that are not known.
    """
    tried: list[Point] = []
    asked = [start]
    while asked:
        if missing := [point for point in asked if point not in known]:
            best = _best(tried, known)
            return Decision("searching", tuple(tried), tuple(missing), best, _open(best, tried))
        tried += asked
        best = _best(tried, known)
        sides = _open(best, tried)
        left = (trials if len(tried) < trials or not (sides or best is None) else at_most) - len(tried)
        asked = _nearest(min(tried, key=lambda point: _rank(point, known)), tried)[: max(0, left)]
    return Decision("censored" if sides or best is None else "finished", tuple(tried), (), best, sides)


def _rank(point: Point, known: Mapping[Point, float]) -> tuple:
    """Sort key: the lower value first, then the smaller rates; diverged points last."""
    value = known[point]
    return (not math.isfinite(value), value if math.isfinite(value) else 0.0, sum(point), point)


def _best(tried: list[Point], known: Mapping[Point, float]) -> Point | None:
    converged = [point for point in tried if math.isfinite(known[point])]
    return min(converged, key=lambda point: _rank(point, known), default=None)


def _open(best: Point | None, tried: list[Point]) -> tuple[tuple[int, int], ...]:
    if best is None:
        return ()
    sides = itertools.product(range(len(best)), (-1, 1))
    return tuple((i, side) for i, side in sides if (*best[:i], best[i] + side, *best[i + 1 :]) not in tried)


def _nearest(centre: Point, tried: list[Point]) -> list[Point]:
    """The untried points that are nearest to a centre, in ascending order."""
    for squared in itertools.count(1):
        reach = range(-math.isqrt(squared), math.isqrt(squared) + 1)
        offsets = [o for o in itertools.product(reach, repeat=len(centre)) if sum(x * x for x in o) == squared]
        points = [tuple(c + o for c, o in zip(centre, offset, strict=True)) for offset in offsets]
        if untried := [point for point in points if point not in tried]:
            return untried
    raise AssertionError("a grid has no end")
