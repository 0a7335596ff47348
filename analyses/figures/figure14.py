"""Figure 14: trace of R over its dimension, for every matrix along training. Run, definitions and rule: ``analyses.figures.common.probing``.

The claim is about Figures 13 and 14 together.
"""

import math

import numpy as np

from analyses.common.evidence import SIZE, over_seeds
from analyses.figures.common.probing import TRACE, grid_artifact, phases_of, rotations, runs, steps_of
from analyses.phases import SETTLED, Phases
from suite.claim import Claim, Evidence
from suite.context import Context


def change_in_second(steps: np.ndarray, traces: np.ndarray, phases: Phases) -> float:
    """Mean |change| of the single ``traces`` (matrices, s) in phase II, as a share of that over the run; NaN without phase II.

    Of the mean over the matrices it would be nearly true by definition: phase I ends when the mean cosine stays.
    """
    if not phases.second > 0:
        return math.nan
    ends = (phases.first_end * steps[-1], phases.last_start * steps[-1])
    first, last = np.array([np.interp(ends, steps, trace) for trace in traces]).T
    return float(np.abs(last - first).mean() / np.abs(traces[:, -1] - traces[:, 0]).mean())


def stays(context: Context) -> Evidence:
    at = steps_of(context)
    changes = [change_in_second(at, found[..., TRACE], phases) for found, phases in zip(rotations(context), phases_of(context), strict=True)]
    missing = sum(map(math.isnan, changes))
    return over_seeds(changes, runs(context.scale), f"no phase II in {missing} of {len(changes)} runs" if missing else "", SIZE)


CLAIMS = (
    Claim(
        key="figure14-trace-constant", place="Appendix A.3, Phase II", kind="invariance",
        says="In phase II the trace of the orthogonal matrices stays almost constant.",
        rule="Size of the change of each trace from the beginning to the end of phase II, mean over all R and P, over that of the whole training: "
        "at most a tenth (what counts as settled in analyses/phases.py).",
        unit="of the whole change", region=(0.0, SETTLED), measure=stays,
    ),
)
ARTIFACT = grid_artifact(14, "R", TRACE, CLAIMS)
