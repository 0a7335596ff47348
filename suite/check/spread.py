"""How far a mean may move by chance, from the spread of recorded seeds: the row's own and that of similar rows.

Symbols: ``s`` is a row's standard deviation over its n seeds, with d = n - 1 degrees of freedom. Similar rows form a
*pool*. Their variances scatter around a common s0^2 as s0^2 d0 / chi^2(d0): with a large d0 the rows spread alike, with
a small d0 they tell little about each other. Then s^2 / s0^2 has the F distribution with (d, d0) degrees of freedom.
Each pool has an s0 of its own, and all pools of one *kind* share one d0; both are fitted by maximum likelihood.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

#: Relative difference that is allowed between machines that compute a number in the same way: 16 units in the last place
#: of fp32, in which weights are drawn. The functions behind a draw (log, cos, square root) may differ by a few units
#: between processors, and numbers computed from weights (norms, means, singular values) differ as much.
ROUNDING = 16 * 2.0**-24
#: The nominal chance that a whole check of an unchanged method, run on other seeds, finds anything outside its tolerance; docs/faults.md has the simulated one.
LEVEL = 0.05
#: Values of d0 that are tried. The last stands for rows that all have the same spread.
ALIKENESS = np.array([0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 1e6])
_ROUNDS = 60  # iterations of the fixed point for s0^2, which gains a digit every few


@dataclass(frozen=True, slots=True)
class RecordedNumber:
    """The recorded mean and spread of one number, and the groups that it belongs to.

    Attributes:
        value, std, n: mean, standard deviation (NaN where n < 2) and number of seeds, as recorded.
        fresh_n: number of seeds of the fresh mean.
        kind: key of the numbers that share one d0.
        pool: key of the numbers of a kind that share one s0.
        table: its table; each table has an equal share of :data:`LEVEL`.
    """

    value: float
    std: float
    n: int
    fresh_n: int
    kind: Hashable
    pool: Hashable
    table: Hashable


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may move.

    Attributes:
        down, up: the largest allowed change in either direction; NaN where the number spreads by factors.
        freedom: degrees of freedom of the underlying spread.
    """

    down: float
    up: float
    freedom: float


@dataclass(frozen=True, slots=True)
class Pool:
    """Similar rows, which share a spread; the symbols are explained at the top of this file.

    Attributes:
        spread: s0.
        logarithmic: whether s0 is of logarithms.
        freedom: sum of the degrees of freedom d over its distinct rows.
        alikeness: d0; the larger it is, the more alike the rows spread.
    """

    spread: float
    logarithmic: bool
    freedom: float
    alikeness: float


def tolerances(numbers: Sequence[RecordedNumber]) -> list[Tolerance | None]:
    """The tolerance of every number; None where neither it nor any other of its kind has a spread beyond rounding.

    The tolerance is t * max(s, s0) * sqrt(1/n + 1/fresh_n), of the number or, if its pool is logarithmic, of its
    logarithm. The quantile t has d + d0 degrees of freedom, but at most as many as the pool's rows have together.

    A logarithmic tolerance beyond a factor of two is replaced by NaN. Numbers that spread so much (errors that grow by
    feedback, the smallest singular value of a square matrix) are far from normal: the level of such a tolerance is unknown.
    """
    pools = pools_of(numbers)
    freedom = np.array([_freedom(one, pool) if pool.spread else 0.0 for one, pool in zip(numbers, pools, strict=True)])
    errors = np.array([_standard_error(one, pool) for one, pool in zip(numbers, pools, strict=True)])
    logarithmic = np.array([pool.logarithmic for pool in pools], dtype=bool)
    halves = _quantiles(numbers, freedom > 0, freedom) * errors
    judged = (freedom > 0) & ~(logarithmic & (halves > math.log(2)))
    halves = np.where(judged, _quantiles(numbers, judged, freedom) * errors, np.nan)
    found: list[Tolerance | None] = []
    for one, df, half, logs in zip(numbers, freedom, halves.tolist(), logarithmic, strict=True):
        down, up = (-one.value * math.expm1(-half), one.value * math.expm1(half)) if logs else (half, half)
        found.append(Tolerance(down, up, float(df)) if df else None)
    return found


def pools_of(numbers: Sequence[RecordedNumber]) -> list[Pool]:
    """The fitted pool of each number, in the order of the numbers."""
    kinds: dict[Hashable, dict[Hashable, list[RecordedNumber]]] = {}
    for one in numbers:
        kinds.setdefault(one.kind, {}).setdefault(one.pool, []).append(one)
    fitted = {kind: _fit_kind(pools) for kind, pools in kinds.items()}
    return [fitted[one.kind][one.pool] for one in numbers]


def _quantiles(numbers: Sequence[RecordedNumber], judged: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """The t quantile of every number; only the numbers marked in ``judged`` share the level."""
    sizes = Counter(one.table for one, shares in zip(numbers, judged, strict=True) if shares)
    levels = [LEVEL / max(len(sizes), 1) / max(sizes[one.table], 1) for one in numbers]
    return scipy.stats.t.isf(np.array(levels) / 2, freedom)


def _standard_error(one: RecordedNumber, pool: Pool) -> float:
    own = _log_std(one.value, one.std) if pool.logarithmic else one.std
    return float(np.fmax(own, pool.spread) * math.sqrt(1 / one.n + 1 / one.fresh_n))


def _freedom(one: RecordedNumber, pool: Pool) -> float:
    own = one.n - 1 if one.std >= 0 else 0
    return float(own + min(pool.alikeness, max(pool.freedom - own, 0)))


def _distinct(members: Sequence[RecordedNumber]) -> np.ndarray:
    """(rows, 3): value, std, degrees of freedom. Equal rows count once, as artifacts share runs; rows that vary by no
    more than rounding are dropped, as they do not show how the others vary."""
    rows = {(one.value, one.std, one.n - 1.0) for one in members if one.std > ROUNDING * abs(one.value)}
    return np.array(sorted(rows)).reshape(-1, 3)


def _log_std(value: float | np.ndarray, std: float | np.ndarray) -> float | np.ndarray:
    """Standard deviation of the logarithm of a log-normal variable with this mean and standard deviation."""
    return np.sqrt(np.log1p((std / value) ** 2))


def _fit_kind(pools: Mapping[Hashable, Sequence[RecordedNumber]]) -> dict[Hashable, Pool]:
    """The fit of each pool; a pool with fewer than two distinct rows gets the fit of all rows of the kind."""
    crowds = {pool: members for pool, members in pools.items() if len(_distinct(members)) > 1}
    found = dict(zip(crowds, _fit(list(crowds.values())), strict=True))
    (whole,) = _fit([[one for members in pools.values() for one in members]])
    return {pool: found.get(pool, whole) for pool in pools}


def _fit(pools: Sequence[Sequence[RecordedNumber]]) -> list[Pool]:
    """Fit s0 of each pool and one d0 by maximum likelihood; of logarithms in pools whose numbers are all positive."""
    logarithmic = [all(one.value > 0 for one in members) for members in pools]
    rows = [_distinct(members) for members in pools]
    views = [
        _likelihood(_log_std(value, std) if logs else std, df)
        for (value, std, df), logs in zip((found.T for found in rows), logarithmic, strict=True)
    ]
    best = int(np.argmax(sum(likelihood for likelihood, _ in views)))
    return [
        Pool(float(spread[best]), logs, float(distinct[:, 2].sum()), float(ALIKENESS[best]))
        for (_, spread), logs, distinct in zip(views, logarithmic, rows, strict=True)
    ]


def _likelihood(std: np.ndarray, freedom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each value in ALIKENESS: the highest log-likelihood of log s, up to a constant, and the s0 that attains it.

    s0^2 is the fixed point of s0^2 = sum(w d s^2) / sum(d) with w = (d + d0) / (d0 + d s^2 / s0^2): a weighted mean of
    the s^2, in which an s^2 far above the others has a small weight.
    """
    if not len(std):
        return np.zeros(len(ALIKENESS)), np.zeros(len(ALIKENESS))
    d, d0, variances = freedom, ALIKENESS[:, None], std**2
    center = np.full((len(ALIKENESS), 1), np.median(variances))
    for _ in range(_ROUNDS):
        weight = (d + d0) / (d0 + d * variances / center)
        center = (weight * d * variances).sum(1, keepdims=True) / d.sum()
    x = d * variances / center
    density = d / 2 * np.log(x) + d0 / 2 * np.log(d0) - (d + d0) / 2 * np.log(x + d0) - scipy.special.betaln(d / 2, d0 / 2)
    return density.sum(1), np.sqrt(center[:, 0])
