"""Final validation perplexities of runs, and evidence from comparing them: by seed, and with the order that is printed."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analyses.common.evidence import largest_of, rank_correlation
from poet.training.spec import RunSpec
from suite.claim import Evidence
from suite.context import Context


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
