"""Intervals and p-values of verdicts, and Holm's correction. Every p-value is two-sided."""

import math
import statistics
from collections.abc import Sequence

import numpy as np
import scipy

CONFIDENCE = 0.95
#: The most rows for which all orders are tried, and the number of orders drawn for more rows (with a fixed seed, so that verdicts repeat).
_ENUMERATED, _DRAWS = 9, 99_999
#: Permutations that are held in memory at a time.
_BATCH = 20_000
#: Values of tau that differ by less count as equal.
_ROUNDING = 1e-9


def t_quantile(n: int, confidence: float = CONFIDENCE) -> float:
    """Half width of the t-interval of the mean of n independent numbers, in standard errors."""
    return float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1))


def paired_interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """(mean, low, high) of the t-interval of independent numbers or paired differences. It is infinite for one number; equal numbers give no width."""
    mean = statistics.fmean(differences)
    if len(differences) < 2:
        return mean, -math.inf, math.inf
    if math.isfinite(mean) and min(differences) == max(differences):  # rounding errors would give the interval a width
        return (differences[0],) * 3
    half = t_quantile(len(differences), confidence) * scipy.stats.sem(differences)
    return mean, mean - half, mean + half


def interval_p(distance: float, half: float, n: int) -> float:
    """The p-value of a tested effect at a distance from the measured one.

    Args:
        distance: from the measured effect to the one that is tested, 0 or more.
        half: from the measured effect to the end of its 95% t-interval on that side.
        n: independent measurements, at least 2.
    """
    if not half:
        return 0.0 if distance else 1.0
    return float(2 * scipy.stats.t.sf(distance / half * t_quantile(n), n - 1))


def share_p(events: int, n: int, share: float) -> float:
    """The exact p-value of a share of n independent events, of which so many happened: twice the smaller tail, as in the Clopper-Pearson interval."""
    tails = (scipy.stats.binom.cdf(events, n, share), scipy.stats.binom.sf(events - 1, n, share))
    return float(min(1.0, 2 * min(tails)))


def agreement_p(n: int) -> float:
    """The sign test's p-value where all of n independent seeds fall on one side: 0.25 for three, below 0.05 from six on."""
    return 2 * 0.5**n


def permuted_kendall(groups: Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]]) -> tuple[float, float]:
    """The mean of Kendall's tau over groups and seeds, with its permutation p-value.

    Under the null hypothesis every order of the rows is equally likely. All groups and seeds share one order, so that their agreement is no
    further evidence. Up to nine rows, all orders are enumerated; for more rows, 99,999 orders are drawn. The one-sided p-value is the share of
    orders whose tau is at least as extreme, on the side of the measured tau. The two-sided one is twice that. For example, four rows with
    tau = -2/3 have 1/6 one-sided (4 of 24 orders) and 1/3 two-sided.

    Args:
        groups: for each group the given numbers of the rows, and for each row its measured numbers by seed. All groups have the same rows.

    Returns:
        (mean tau, two-sided p-value); NaN where a tau is not defined.
    """
    rows = len(groups[0][0])
    first, second = np.triu_indices(rows, 1)
    given = [_ranks(numbers) for numbers, _ in groups]
    signs = [
        np.mean([_normed(np.sign(ranks[first] - ranks[second])) for ranks in map(_ranks, zip(*measured, strict=True))], axis=0)
        for _, measured in groups
    ]

    def tau(order: np.ndarray, axis: int) -> np.ndarray:
        order = np.moveaxis(order, axis, -1).astype(int)
        pairs = ((ranks[order[..., first]] - ranks[order[..., second]], sign) for ranks, sign in zip(given, signs, strict=True))
        return np.mean([_normed(np.sign(difference)) @ sign for difference, sign in pairs], axis=0)

    exact = rows <= _ENUMERATED
    found = scipy.stats.permutation_test(
        (np.arange(rows),), tau, permutation_type="pairings", vectorized=True, batch=_BATCH, n_resamples=math.inf if exact else _DRAWS,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    mean = round(float(found.statistic), 12)  # exactly 1 for equal orders, and not 1 + 2e-16
    if math.isnan(mean):
        return math.nan, math.nan
    side = 1 if mean >= 0 else -1
    beyond = int((side * (found.null_distribution - mean) >= -_ROUNDING).sum())
    drawn = len(found.null_distribution)
    return mean, min(1.0, 2 * (beyond / drawn if exact else (beyond + 1) / (drawn + 1)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given: valid together, whatever the dependence between the tests."""
    adjusted, worst = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = worst
    return adjusted


def _ranks(numbers: Sequence[float]) -> np.ndarray:
    return scipy.stats.rankdata([math.inf if math.isnan(number) else number for number in numbers])


def _normed(signs: np.ndarray) -> np.ndarray:
    """Signs of pairs over the square root of the number of pairs without a tie. The dot product of two such vectors is tau-b."""
    with np.errstate(invalid="ignore"):
        return signs / np.sqrt((signs**2).sum(-1, keepdims=True))
