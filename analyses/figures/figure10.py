"""Figure 10: error of the Cayley-Neumann approximation of R and P of one weight matrix, first tenth of training, k = 0 to 5.

Runs, steps and the rule for the matrix: ``analyses.figures.common.orthogonality``. Published ranges were read off the figure for R and P
together: the peak of k = 1, and the errors at the last of the five merges that the figure shows.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from analyses.common.evidence import ALL, SERIES_ERROR, as_read, over_seeds, rank_correlation, share_in
from analyses.common.published import read_published
from analyses.figures.common.orthogonality import (
    MEDIAN, PRINTED_TERMS, Matrix, artifact, by_terms, errors, first_tenth, middle, name_of, read_figure10, runs,
)
from poet.training.spec import RunSpec
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context
from suite.scale import Scale


def matrices(scale: Scale) -> list[Matrix]:
    """R and P of the matrix that the figure shows."""
    return [(middle(scale), "up_proj", side) for side in "RP"]


def order_of_terms(medians: Sequence[np.ndarray], specs: Sequence[RunSpec] = ()) -> Evidence:
    """Kendall's tau between k and the error, mean over matrices; ``medians`` are (k, matrices) by seed. -1 if each term lowers the error."""
    if any(np.isnan(of_seed).any() for of_seed in medians):
        return over_seeds([math.nan] * len(medians), specs, "some k has no error: its runs diverged")
    return replace(rank_correlation([(PRINTED_TERMS, np.concatenate(medians, axis=1).tolist())], specs), n=len(medians))


def falls_at_merges(at: np.ndarray, values: np.ndarray, merge_every: int, until: int) -> np.ndarray:
    """Change of the error at each merge before step ``until``: ``values`` (s,) one step after the merge minus right before it."""
    before = np.arange(merge_every, until, merge_every)
    return values[np.searchsorted(at, before + 1)] - values[np.searchsorted(at, before)]


def resets(context: Context) -> Evidence:
    names, specs = list(map(name_of, matrices(context.scale))), runs(context.scale, PRINTED_TERMS)
    at, period = np.array(specs[0].probes["orthogonality"]), specs[0].parameters["merge_every"]
    falls = partial(falls_at_merges, at, merge_every=period, until=first_tenth(specs[0].steps))
    by_seed = zip(*errors(context, PRINTED_TERMS).values(), strict=True)
    found = [np.concatenate([falls(values[name]) for _, values in own for name in names]) for own in by_seed]
    return share_in(NEGATIVE, found, specs)


def printed_ranges() -> dict[tuple[int, str], tuple[float, float]]:
    """(low, high) by (k, quantity): the ranges read off the figure, widened by half a unit of their last digits."""
    printed = read_published("figure10")
    return {(int(p.terms), p.quantity): (as_read(p.low)[0], as_read(p.high)[1]) for p in printed.itertuples()}


def in_ranges(context: Context) -> Evidence:
    """By seed, the share of the printed ranges that contain the mean of R and P."""
    ranges = printed_ranges()
    found = {quantity: by_terms(context, matrices(context.scale), quantity) for _, quantity in ranges}
    means = np.array([[values[terms].mean() for values in found[quantity]] for terms, quantity in ranges]).T
    low, high = np.array(list(ranges.values())).T
    # Distance outside the range, at most 0 inside. A missing mean stays NaN.
    off = list(np.maximum(low - means, means - high))
    return share_in((-np.inf, 0.0), off, runs(context.scale, PRINTED_TERMS), f"{len(ranges)} ranges")


CLAIMS = (
    Claim(
        key="figure10-lower-with-terms", place="Section 5.3, Neumann series approximation; Figure 10", kind="trend",
        says="With more Neumann terms the orthogonal approximation error is lower.",
        rule="Kendall's tau of k (0 to 4) and the error at the ends of the merge periods (median of the first tenth of training), "
        "mean of the taus of R and of P of the matrix: below 0.",
        unit="tau", region=NEGATIVE,
        measure=lambda context: order_of_terms(by_terms(context, matrices(context.scale), MEDIAN.format("first")), runs(context.scale, PRINTED_TERMS)),
    ),
    Claim(
        key="figure10-merges-reset", place="Section 5.3, Neumann series approximation; Figure 10", kind="phase",
        says="Merging and reinitializing resets the error periodically.",
        rule="Share of the merges before the end of the first tenth of training (R and P, k = 0 to 4) one step after which the error is lower than "
        "right before: all of them.",
        unit="share of merges", region=ALL, measure=resets,
    ),
    Claim(
        key="figure10-values", place="Figure 10", kind="number",
        says="The error of k = 1 peaks at 0.2 to 0.3 and is about 0.1 later; from k = 2 on it falls to between 0.003 and 0.006.",
        rule="Share of the ranges that were read off, half a unit of their last digits added, in which the mean of R and P lies: all "
        "of them.",
        unit="share of ranges", region=ALL, measure=in_ranges,
        paper_only=SERIES_ERROR,
    ),
)
ARTIFACT = artifact(
    10, "Approximation error of the orthogonal matrices R and P of a weight matrix, by the number k of Neumann terms.",
    matrices, each=True, published=read_figure10(), claims=CLAIMS,
)
