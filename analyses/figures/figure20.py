"""Figure 20: singular values along training with POET, the first blocks (0 to 2 of the paper's eight).

The caption names the gate projection, which the picture lacks; here it is shown. The claims are about Figures 20 to 22
together, and so about every matrix of the model.
"""

import numpy as np

from analyses.common.evidence import SIZE, TWO_DIGITS, over_seeds_in
from analyses.figures.common.spectra import POET, grid_artifact, largest_change, measured, runs
from suite.claim import Claim, Evidence
from suite.context import Context

#: Largest ratio of the drift at the end to that after a tenth of the run at which drift has not accumulated. The ratio would be 10
#: if every merge added the same drift.
NO_ACCUMULATION = 2.0


def every_spectrum_stays(context: Context) -> Evidence:
    found = measured(context, POET, "spectrum")[1]
    worst = [max(largest_change(s) for s in matrices.values()) for matrices in found]
    return over_seeds_in(SIZE, worst, runs(POET)(context.scale), f"the worst of {len(found[0])} matrices")


def drift(matrices: dict[str, np.ndarray]) -> np.ndarray:
    """Mean |log(s / start)| over the singular values of all matrices, (steps, r) each -> (steps,)."""
    return np.mean([np.abs(np.log(s / s[0])).mean(-1) for s in matrices.values()], axis=0)


def accumulates(context: Context) -> Evidence:
    drifts = [drift(matrices) for matrices in measured(context, POET, "spectrum")[1]]
    return over_seeds_in(SIZE, [d[-1] / d[1] for d in drifts], runs(POET)(context.scale))


CLAIMS = (
    Claim(
        key="figure20-every-spectrum-stays", place="Section 1; Appendix I; Figures 20 to 22", kind="invariance",
        says="POET keeps the spectrum of the random initialization, in every matrix of every block.",
        rule="Largest change of a singular value of any matrix at any measurement, relative to its start: at most 5%, which two "
        "digits may not show.",
        unit="relative", region=TWO_DIGITS, measure=every_spectrum_stays,
    ),
    Claim(
        key="figure20-no-accumulation", place="Section 1, Cayley-Neumann parameterization", kind="bound",
        says="Merging and reinitializing prevents approximation errors from accumulating.",
        rule="Mean |log(singular value / start)| at the end of training over what it is after the first tenth of it: at most 2. "
        "(R and P are reset; what they leave in W is the error that could accumulate.)",
        unit="ratio", region=(0.0, NO_ACCUMULATION), measure=accumulates,
    ),
)
ARTIFACT = grid_artifact(20, POET, group=0, claims=CLAIMS)
