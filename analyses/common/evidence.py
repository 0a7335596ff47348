"""Evidence for claims of several artifacts: printed digits, shares, lines of tables, and final perplexities compared by seed or by order."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from poet.training.spec import RunSpec
from suite.claim import Evidence
from suite.context import Context
from suite.statistics import CONFIDENCE, paired_interval, permuted_kendall, t_quantile
from suite.wording import listed

#: Regions of a share: every one of them; and of a ratio whose being below 1 is all that is claimed.
ALL = (1.0, 1.0)
BELOW_ONE = (0.0, math.nextafter(1, 0))
#: Bounds of a size or a distance.
SIZE = (0.0, math.inf)
#: A relative change that two digits may not show: half a unit in the second digit of 1.0. What the paper calls "almost
#: negligible", "the same" or "small" of a curve without numbers is read as no more than that.
TWO_DIGITS = (0.0, 0.05)


def over_seeds(values: Sequence[float], runs: Sequence[RunSpec] = (), note: str = "") -> Evidence:
    """The mean over seeds, NaN if any value is."""
    effect, low, high = paired_interval(values)
    return Evidence(effect=effect, low=low, high=high, n=len(values), runs=tuple(runs), note=note)


def largest_of(comparisons: Sequence[Sequence[float]], runs: Sequence[RunSpec] = (), note: str = "") -> Evidence:
    """The largest of several mean differences: a claim that all of them are negative stands or falls with it.

    Its interval has 95% for the largest of the true means, whichever that is. The upper end is the largest of their upper
    ends: that mean's own is one of them. The lower end is the largest of their lower ends, each with its part of the error
    (Bonferroni): any one may have come out too high. Of one comparison it is the plain interval.

    Args:
        comparisons: of each the differences, one for each seed; any NaN makes the effect NaN.
        runs, note: see :class:`Evidence`.
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
    interval = stats.binomtest(sum(events), len(events)).proportion_ci(CONFIDENCE, "exact")
    share = sum(events) / len(events)
    return Evidence(effect=share, low=interval.low, high=interval.high, n=len(events), bounds=(0.0, 1.0), runs=tuple(runs))


def rank_correlation(
    groups: Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]], runs: Sequence[RunSpec] = (), note: str = ""
) -> Evidence:
    """Kendall's tau between given numbers and measured ones, one for each seed, the mean over groups.

    A group has the given numbers, and for each of them those by seed. What did not converge (NaN) comes last. The p-value is that of
    :func:`suite.statistics.permuted_kendall`: a discrete outcome has no interval."""
    tau, p = permuted_kendall(groups)
    said = "; ".join(filter(None, (note, f"permutation p = {p / 2:.2g} one-sided" if p < 1 else "")))
    return Evidence(effect=tau, low=math.nan, high=math.nan, p=p, n=len(groups[0][1][0]), bounds=(-1.0, 1.0), runs=tuple(runs), note=said)


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


def over_seeds_in(
    bounds: tuple[float, float], values: Sequence[float], runs: Sequence[RunSpec] = (), note: str = ""
) -> Evidence:
    """The mean over seeds of a quantity that cannot leave some bounds: its interval ends there."""
    found = over_seeds(values, runs, note)
    return replace(found, low=max(bounds[0], found.low), high=min(bounds[1], found.high), bounds=bounds)


def share_in(region: tuple[float, float], by_seed: Sequence[np.ndarray], runs: Sequence[RunSpec] = (), note: str = "") -> Evidence:
    """The mean over seeds of the share of values in a closed region, such as of the matrices of a run; NaN if any value is (a run diverged)."""
    shares = [math.nan if np.isnan(values).any() else float(((values >= region[0]) & (values <= region[1])).mean()) for values in by_seed]
    return over_seeds_in((0.0, 1.0), shares, runs, note)


def of_line(line: Any, note: str = "") -> Evidence:
    """The mean of independent draws that a table's line has as ``measured``, ``std`` and ``n`` (at least 2)."""
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


def paired_differences(context: Context, ours: Sequence[RunSpec], theirs: Sequence[RunSpec]) -> list[float]:
    """Differences of final perplexities, ours minus theirs, by seed; NaN where one of the two diverged.

    Raises:
        ValueError: the two do not have the same seeds in the same order.
    """
    if [spec.seed for spec in ours] != [spec.seed for spec in theirs]:
        raise ValueError("runs are compared by seed: give both sides the same seeds")
    return [a - b for a, b in zip(perplexities(context, ours), perplexities(context, theirs), strict=True)]


def _diverged(differences: Sequence[float]) -> str:
    gone = sum(map(math.isnan, differences))
    return f"diverged: {gone} of {len(differences)} pairs" if gone else ""


def largest_difference(context: Context, pairs: Sequence[tuple[Sequence[RunSpec], Sequence[RunSpec]]]) -> Evidence:
    """The largest of the mean differences of final perplexities of several (ours, theirs), paired by seed: see :func:`largest_of`; of several
    the note says whose it is."""
    differences = [paired_differences(context, ours, theirs) for ours, theirs in pairs]
    note = _diverged([value for values in differences for value in values])
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
