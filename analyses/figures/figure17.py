"""Figure 17: singular values along training with AdamW, the first blocks (0 and 1 of the paper's eight).

The captions of Figures 20 to 22 name the gate projection, which the pictures lack; here all six figures have it. The
claims are about Figures 17 to 19 together, and so about every matrix of the model.
"""

import numpy as np

from analyses.common.evidence import ALL, over_seeds, share_in
from analyses.figures.common.spectra import grid_artifact, growths, measured, runs, steps_of
from analyses.phases import SLOW
from suite.claim import POSITIVE, Claim, Evidence
from suite.context import Context

ADAMW = runs("adamw")
#: Share of the run at which its end begins, where the norm has levelled off according to Appendix I.
LAST_FIFTH = 0.8


def every_matrix_grows(context: Context) -> Evidence:
    found = growths(context, "adamw")
    return share_in(POSITIVE, found, ADAMW(context.scale), f"{len(found[0])} matrices")


def late_rate(steps: np.ndarray, norms: np.ndarray) -> float:
    """Growth of ``norms`` (s,) per step in the last fifth of the run, divided by that of the whole run; NaN if they do not grow."""
    start = int(np.argmax(steps >= LAST_FIFTH * steps[-1]))
    growth = norms[-1] - norms[0]
    late = (norms[-1] - norms[start]) / (steps[-1] - steps[start])
    return float(late / growth * steps[-1]) if growth > 0 else float("nan")


def levels_off(context: Context) -> Evidence:
    steps = np.array(steps_of(context))
    rates = [late_rate(steps, np.mean([s[:, 0] for s in matrices.values()], axis=0)) for matrices in measured(context, "adamw", "spectrum")]
    return over_seeds(rates, ADAMW(context.scale), "here the learning rate has decayed by then, whether or not the paper's had")


CLAIMS = (
    Claim(
        key="figure17-every-matrix-grows", place="Figures 17 to 19, as read", kind="trend",
        says="With AdamW the largest singular value grows in every matrix of every block.",
        rule="Share of weight matrices whose largest singular value is larger at the end than at the start: all of them.",
        unit="share of matrices", region=ALL, measure=every_matrix_grows,
    ),
    Claim(
        key="figure17-norm-levels-off", place="Appendix I", kind="phase",
        says="By the end of the run the spectral norm of the AdamW-trained model has reached a plateau.",
        rule="Growth a step of the largest singular value, mean over matrices, in the last fifth of the run over that of the "
        "whole run: at most a quarter (what counts as slow in analyses/phases.py). A run that only follows the learning rate does so, too.",
        unit="of the mean rate", region=(-float("inf"), SLOW), measure=levels_off,
    ),
)
ARTIFACT = grid_artifact(17, "adamw", group=0, claims=CLAIMS)
