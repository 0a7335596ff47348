"""What Tables 4 and 12 share: their cells, the rule for whether a cell has learned, and claims about cells that have."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from analyses.common.evidence import largest_of
from analyses.common.layout import mean_cell, measured_columns
from poet.finetuning.spec import FinetuningSpec
from suite.claim import Evidence
from suite.judging import NOTHING
from suite.statistics import paired_interval

#: Number of standard deviations above the baseline that counts as learned. Fixed before any run. Since 2026-11-23 the deviation is that of
#: seeds and of validation examples together; before, that of seeds alone.
LEARNED = 2.0


def learned(values: Sequence[float], baseline: float, metric: str, examples: int) -> bool:
    """Whether the mean over seeds is above a baseline by more than :data:`LEARNED` standard deviations; False for one seed, or if a run diverged.

    Args:
        values: one for each seed.
        baseline: the score without learning.
        metric: "accuracy"; "rouge" (in percent); any other is a correlation.
        examples: number of validation examples, which all seeds share. Their part of the deviation is the standard error of the baseline. For
            ROUGE it is the largest one that scores with this mean can have.
    """
    if len(values) < 2 or any(map(math.isnan, values)):
        return False
    top = {"accuracy": 1.0, "rouge": 100.0}.get(metric)
    error = math.sqrt((baseline * (top - baseline) if top else 1.0) / examples)
    return statistics.fmean(values) - baseline > LEARNED * math.hypot(statistics.stdev(values), error)


def score_columns(values: Sequence[float]) -> dict[str, float]:
    """The columns of a cell: :func:`measured_columns`, ``median`` (NaN if a run diverged), and ``low`` and ``high``, the 95% interval of the mean."""
    columns, (_, low, high) = measured_columns(values), paired_interval(values)
    median = math.nan if columns["diverged"] else statistics.median(values)
    return {"measured": columns["measured"], "median": median, **columns, "low": low, "high": high}


def score_cell(line: Any, digits: int) -> str:
    """A measured score in Markdown: mean, spread and, of two seeds or more, the median."""
    return mean_cell(line, digits) + (f" / {line.median:.{digits}f}" if line.n > 1 and not line.diverged else "")


def stand_ins(tasks: Mapping[str, str]) -> str:
    """A sentence on the tasks that use stand-in data; empty if none does. ``tasks``: the kind of each task's data, by the task's printed name."""
    named = [task for task, kind in tasks.items() if kind == "stand-in"]
    return f"Stand-ins, made by a rule, take the place of the data of {', '.join(named)}." if named else ""


def judged_orders(frame: pd.DataFrame, column: str, baseline: str) -> str:
    """A sentence that names the values of a column (tasks, scores) for which orders may be compared: some cell has learned, at a rate inside its grid."""
    usable = frame[(frame.learned == "yes") & (frame.at_grid_end == "")]
    able = sorted(set(usable[column]))
    if not able:
        return f"**No order is judged**: on no {column} is any cell above {baseline} by more than its scatter."
    return f"Some cell is above {baseline} by more than its scatter, at a rate inside what was tried, on: {', '.join(able)}. Orders are compared there alone."


def all_lower(comparisons: Sequence[Sequence[float] | None], runs: Sequence[FinetuningSpec], greatest: float, why: str, data: str) -> Evidence:
    """Evidence for a claim that several mean differences are all negative, where some comparisons were left out.

    Args:
        comparisons: for each comparison the differences, one for each seed; None if it was left out.
        runs: the runs of all comparisons.
        greatest: the largest difference that the metric allows.
        why: the reason for leaving comparisons out.
        data: the sentence of :func:`stand_ins`, for the note.
    """
    runs = tuple(dict.fromkeys(runs))
    compared = [differences for differences in comparisons if differences is not None]
    left_out = f"{len(comparisons) - len(compared)} of {len(comparisons)} comparisons left out: {why}"
    note = "; ".join(filter(None, ("" if len(compared) == len(comparisons) else left_out if compared else "nothing was learned that can be compared", data.rstrip("."))))
    if not compared:
        return replace(NOTHING, runs=runs, note=note)
    found = largest_of(compared, runs, note)
    if len(compared) == len(comparisons):
        return found
    # One positive difference refutes the claim, but no number of negative ones confirms it: those left out may be anything.
    return replace(found, high=greatest, largest_of=found.largest_of if found.effect > 0 else ())


def origins(frame: pd.DataFrame, examples: str) -> list[str]:
    """A sentence for each task: the source of its examples, the number trained on, and the number measured (column ``examples``)."""
    return [
        f"{line.task}: {line.origin}; of these {line.train_examples:,} are trained on and {getattr(line, examples):,} measured"
        for line in frame.drop_duplicates("task").itertuples()
    ]
