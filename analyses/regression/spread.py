"""How far a mean may move by chance: from the spread over recorded seeds, a row's own and that of rows like it.

Symbols: ``s`` is a row's standard deviation over its n seeds, with d = n - 1 degrees of freedom. Rows of one *pool* are
taken to spread alike, though not equally: their variances scatter around a common s0^2 as s0^2 d0 / chi^2(d0). Where d0
is large all rows are alike; where it is small they tell little about each other. Then s^2 / s0^2 has the F distribution
with (d, d0) degrees of freedom, and s0 of each pool and d0 of all pools of one *kind* are those of the highest
likelihood.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

#: The chance that a whole check of an unchanged method, run on other seeds, finds anything outside its tolerance.
LEVEL = 0.05
#: Values of d0 that are tried. The last stands for rows that do not differ at all.
ALIKENESS = np.array([1.0, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 1e6])
_ROUNDS = 60  # of the fixed point for s0^2: it gains a digit every few


@dataclass(frozen=True, slots=True)
class Spread:
    """What is recorded of one number, and what it is compared with.

    Attributes:
        value, std, n: mean, standard deviation (NaN where n < 2) and seeds, as recorded.
        fresh_n: seeds of the fresh mean.
        kind: numbers of whose pools the rows are as much alike in one as in another.
        pool: numbers of a kind that spread alike.
        family: its artifact: each one has an equal share of :data:`LEVEL`.
    """

    value: float
    std: float
    n: int
    fresh_n: int
    kind: Hashable
    pool: Hashable
    family: Hashable


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may move.

    Attributes:
        down, up: the largest change in either direction that is still within.
        freedom: degrees of freedom of the spread that they come from.
    """

    down: float
    up: float
    freedom: float


@dataclass(frozen=True, slots=True)
class _Pool:
    """spread: s0; logarithmic: it is that of logarithms; freedom: of all its rows together; alikeness: d0."""

    spread: float
    logarithmic: bool
    freedom: float
    alikeness: float


def tolerances(numbers: Sequence[Spread]) -> list[Tolerance | None]:
    """The tolerance of every number; None where neither it nor its pool has a spread.

    It is t * max(s, s0) * sqrt(1/n + 1/fresh_n), of the number or, where its pool is logarithmic, of its logarithm. The
    quantile t has the degrees of freedom of the row's own spread and of its pool's together: d + d0, but never more than
    the pool's rows were measured with.
    """
    kinds: dict[Hashable, dict[Hashable, list[Spread]]] = {}
    for one in numbers:
        kinds.setdefault(one.kind, {}).setdefault(one.pool, []).append(one)
    fitted = {kind: dict(zip(pools, _fit(pools.values()), strict=True)) for kind, pools in kinds.items()}
    freedom = [_freedom(one, fitted[one.kind][one.pool]) for one in numbers]
    sizes = Counter(one.family for one, df in zip(numbers, freedom, strict=True) if df)
    levels = [LEVEL / max(len(sizes), 1) / max(sizes[one.family], 1) for one in numbers]
    quantiles = stats.t.isf(np.array(levels) / 2, freedom)
    found: list[Tolerance | None] = []
    for one, df, quantile in zip(numbers, freedom, quantiles, strict=True):
        if not df:
            found.append(None)
            continue
        pool = fitted[one.kind][one.pool]
        own = _log_std(one.value, one.std) if pool.logarithmic else one.std
        half = quantile * np.fmax(own, pool.spread) * math.sqrt(1 / one.n + 1 / one.fresh_n)
        down, up = (-one.value * np.expm1(-half), one.value * np.expm1(half)) if pool.logarithmic else (half, half)
        found.append(Tolerance(float(down), float(up), df))
    return found


def _freedom(one: Spread, pool: _Pool) -> float:
    own = one.n - 1 if one.std >= 0 else 0
    return float(own + min(pool.alikeness, max(pool.freedom - own, 0)))


def _distinct(members: Sequence[Spread]) -> np.ndarray:
    """(rows, 3): value, std, degrees of freedom. A run that several artifacts show counts once, and what does not vary
    at all says nothing of how the others do."""
    rows = {(one.value, one.std, one.n - 1.0) for one in members if one.std > 0}
    return np.array(sorted(rows)).reshape(-1, 3)


def _log_std(value: float | np.ndarray, std: float | np.ndarray) -> float | np.ndarray:
    """Standard deviation of the logarithm of a log-normal variable with this mean and standard deviation."""
    return np.sqrt(np.log1p((std / value) ** 2))


def _fit(pools: Iterable[Sequence[Spread]]) -> list[_Pool]:
    """s0 of each pool of a kind, and d0 of all, by likelihood; of logarithms where a pool's numbers are positive."""
    pools = list(pools)
    logarithmic = [all(one.value > 0 for one in members) for members in pools]
    rows = [_distinct(members) for members in pools]
    views = [
        _likelihood(_log_std(value, std) if logs else std, df)
        for (value, std, df), logs in zip((found.T for found in rows), logarithmic, strict=True)
    ]
    best = int(np.argmax(sum(likelihood for likelihood, _ in views)))
    return [
        _Pool(float(spread[best]), logs, float(distinct[:, 2].sum()), float(ALIKENESS[best]))
        for (_, spread), logs, distinct in zip(views, logarithmic, rows, strict=True)
    ]


def _likelihood(std: np.ndarray, freedom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every d0 the highest log-likelihood of log s, up to a constant, and the s0 that has it.

    s0^2 is a weighted mean of the s^2 in which one that lies far above the others weighs less, the fixed point of
    s0^2 = sum(w d s^2) / sum(d) with w = (d + d0) / (d0 + d s^2 / s0^2).
    """
    if not len(std):
        return np.zeros(len(ALIKENESS)), np.zeros(len(ALIKENESS))
    d, d0, variances = freedom, ALIKENESS[:, None], std**2
    center = np.full((len(ALIKENESS), 1), np.median(variances))
    for _ in range(_ROUNDS):
        weight = (d + d0) / (d0 + d * variances / center)
        center = (weight * d * variances).sum(1, keepdims=True) / d.sum()
    x = d * variances / center
    density = d / 2 * np.log(x) + d0 / 2 * np.log(d0) - (d + d0) / 2 * np.log(x + d0) - special.betaln(d / 2, d0 / 2)
    return density.sum(1), np.sqrt(center[:, 0])
