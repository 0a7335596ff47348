"""Evidence of the forms that several artifacts share: means over seeds, shares, rank correlations, and differences of final perplexities."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import scipy

from poet.training.spec import RunSpec
from suite.claim import ANYTHING, Evidence
from suite.context import Context
from suite.statistics import CONFIDENCE, paired_interval, permuted_kendall, t_quantile
from suite.wording import listed

#: Regions of a claim: a share of one, a ratio below one, and one below a half, which is what "significantly" and "much" fewer are taken for.
ALL = (1.0, 1.0)
BELOW_ONE = (0.0, math.nextafter(1, 0))
BELOW_HALF = (0.0, math.nextafter(0.5, 0))
#: Bounds of a size or a distance.
SIZE = (0.0, math.inf)
#: A relative change that two digits may not show: half a unit in the second digit of 1.0. Where the paper calls a change on a
#: curve without numbers "almost negligible", "the same" or "small", this is the largest change that the claim allows.
TWO_DIGITS = (0.0, 0.05)
#: Why small scales cannot judge how far POET's spectra move.
SERIES_ERROR = "the error of the Neumann series, which moves spectra, depends on T_m times learning rate, on the widths, and on the precision"


def over_seeds(
    values: Sequence[float], runs: Sequence[RunSpec] = (), note: str = "", bounds: tuple[float, float] = ANYTHING
) -> Evidence:
    """The mean over seeds with its 95% interval; NaN if any value is NaN. ``bounds`` are those of a single value."""
    effect, low, high = paired_interval(values)
    return Evidence(effect=effect, low=low, high=high, n=len(values), bounds=bounds, runs=tuple(runs), note=note)


def largest_of(comparisons: Sequence[Sequence[float]], runs: Sequence[RunSpec] = (), note: str = "") -> Evidence:
    """The largest of several mean differences, which decides a claim that all of them are negative; ``comparisons`` has each one's by seed.

    The interval covers the largest true mean with 95% confidence. Its upper end is the largest upper end of the 95% intervals: one
    of them belongs to the largest true mean. Its lower end is the largest lower end of Bonferroni intervals, since any of the means
    may have come out too high. For one comparison it is the plain interval. Any NaN makes the effect NaN.
    """
    plain = np.array([paired_interval(values) for values in comparisons])
    strict = np.array([paired_interval(values, 1 - (1 - CONFIDENCE) / len(comparisons)) for values in comparisons])
    effect, low, high = float(plain[:, 0].max()), float(strict[:, 1].max()), float(plain[:, 2].max())
    parts = tuple((float(mean), float(top - mean)) for mean, _, top in plain)
    return Evidence(effect=effect, low=low, high=high, n=len(comparisons[0]), largest_of=parts, runs=tuple(runs), note=note)


def exactly(value: float, runs: Sequence[RunSpec] = (), note: str = "", n: int = 1) -> Evidence:
    """A count, or a number that is the same whenever it is computed."""
    return Evidence(effect=value, low=value, high=value, n=n, runs=tuple(runs), note=note)


def share_of(events: Sequence[bool], runs: Sequence[RunSpec] = ()) -> Evidence:
    """The share of independent events that happened, with its exact (Clopper-Pearson) interval."""
    happened, n = sum(events), len(events)
    interval = scipy.stats.binomtest(happened, n).proportion_ci(CONFIDENCE, "exact")
    return Evidence(effect=happened / n, low=interval.low, high=interval.high, n=n, events=happened, bounds=(0.0, 1.0), runs=tuple(runs))


def rank_correlation(
    groups: Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]], runs: Sequence[RunSpec] = (), note: str = ""
) -> Evidence:
    """Kendall's tau between given and measured numbers, the mean over seeds and groups.

    A group is the given numbers and, for each of them, the measured ones by seed. NaN (not converged) ranks last. Tau is discrete, so
    the evidence has no interval, but the p-value of :func:`suite.statistics.permuted_kendall`."""
    tau, p = permuted_kendall(groups)
    return Evidence(effect=tau, low=math.nan, high=math.nan, p=p, n=len(groups[0][1][0]), bounds=(-1.0, 1.0), runs=tuple(runs), note=note)


def with_p(tau: Evidence) -> str:
    """A :func:`rank_correlation` for a sentence: ``"0.33 (permutation p = 0.67, 3 seeds)"``."""
    if math.isnan(tau.effect):
        return "not defined (in some seed all rows end alike)"
    return f"{tau.effect:.2f} (permutation p = {tau.p:.2g}, {tau.n} {'seeds' if tau.n > 1 else 'seed'})"


def as_read(printed: str) -> tuple[float, float]:
    """The range of values that round to a printed number: ``as_read("0.62") == (0.615, 0.625)``."""
    value = Decimal(printed)
    half = Decimal(5).scaleb(value.as_tuple().exponent - 1)
    return float(value - half), float(value + half)


def share_in(region: tuple[float, float], by_seed: Sequence[np.ndarray], runs: Sequence[RunSpec] = (), note: str = "") -> Evidence:
    """The share of values that lie in a closed region, as a mean over seeds; NaN if any value is NaN (a run diverged)."""
    shares = [math.nan if np.isnan(values).any() else float(((values >= region[0]) & (values <= region[1])).mean()) for values in by_seed]
    return over_seeds(shares, runs, note, (0.0, 1.0))


def of_line(line: Any, note: str = "") -> Evidence:
    """The number ``measured`` of a table's line, with the 95% t-interval from its ``std`` and ``n`` (at least 2)."""
    half = t_quantile(line.n) * line.std / math.sqrt(line.n)
    mean = line.measured
    return Evidence(effect=mean, low=mean - half, high=mean + half, n=int(line.n), note=note)


def but_for(names: Sequence[str]) -> str:
    """A note on exceptions, the first few by name; empty if there are none."""
    return f"not so: {listed(dict.fromkeys(names), 4, '; ')}" if names else ""


def share_agreeing(frame: pd.DataFrame, column: str, what: Sequence[str], runs: Sequence[RunSpec] = ()) -> Evidence:
    """The share of a table's lines (at least one) that say "yes" in a column; exact.

    The note lists those that do not, by their cells in the columns ``what``."""
    agree = frame[column] == "yes"
    wrong = frame.loc[~agree, list(what)].fillna("").astype(str).values
    return exactly(float(agree.mean()), runs, but_for([" ".join(filter(None, names)) for names in wrong]), n=len(frame))


def perplexities(context: Context, specs: Sequence[RunSpec]) -> list[float]:
    """Final validation perplexity of runs; NaN where one diverged."""
    return [context.record(spec)["validation_perplexity"] for spec in specs]


def largest_difference(context: Context, pairs: Sequence[tuple[Sequence[RunSpec], Sequence[RunSpec]]]) -> Evidence:
    """The largest mean difference of final perplexities over the pairs (ours minus theirs, both by the scale's seeds); see :func:`largest_of`.

    A difference is NaN where one of the two runs diverged. If there are several pairs, the note names the one with the largest difference."""
    differences = [[a - b for a, b in zip(*(perplexities(context, side) for side in pair), strict=True)] for pair in pairs]
    gone = [math.isnan(value) for values in differences for value in values]
    note = f"diverged: {sum(gone)} of {len(gone)} pairs" if any(gone) else ""
    if not note and len(pairs) > 1:
        (ours, *_), (theirs, *_) = pairs[int(np.argmax([statistics.fmean(values) for values in differences]))]
        note = f"the largest of {len(pairs)}: {ours.model}/{ours.variant} minus {theirs.model}/{theirs.variant}"
    found = largest_of(differences, list(dict.fromkeys(spec for pair in pairs for side in pair for spec in side)), note)
    return replace(found, compared=tuple((ours[0], theirs[0]) for ours, theirs in pairs))


def rank_agreement(context: Context, published: Sequence[float], cells: Sequence[Sequence[RunSpec]]) -> Evidence:
    """Kendall's tau between printed perplexities (NaN: not converged) and measured ones; see :func:`rank_correlation`.

    ``cells`` has the runs of each printed number, by seed in the same order."""
    measured = [perplexities(context, specs) for specs in cells]
    return rank_correlation([(published, measured)], [s for specs in cells for s in specs], f"{len(cells)} rows")
