"""Figure 20: singular values along training with POET, the first blocks (0 to 2 of the paper's eight).

The caption names the gate projection, which the picture lacks; here it is shown. The claims are about Figures 20 to 22
together, and so about every matrix of the model.
"""

from analyses.common.evidence import SERIES_ERROR, SIZE, TWO_DIGITS, over_seeds
from analyses.figures.common.spectra import POET, grid_artifact, largest_change, measured, runs
from suite.claim import Claim, Evidence
from suite.context import Context


def every_spectrum_stays(context: Context) -> Evidence:
    found = measured(context, POET, "spectrum")
    worst = [max(largest_change(s) for s in matrices.values()) for matrices in found]
    return over_seeds(worst, runs(POET)(context.scale), f"the worst of {len(found[0])} matrices", SIZE)


CLAIMS = (
    Claim(
        key="figure20-every-spectrum-stays", place="Section 1; Appendix I; Figures 20 to 22", kind="invariance",
        says="POET keeps the spectrum of the random initialization, in every matrix of every block.",
        rule="Largest change of a singular value of any matrix at any measurement, relative to its start: at most 5%, which two "
        "digits may not show.",
        unit="relative", region=TWO_DIGITS, measure=every_spectrum_stays,
        paper_only=SERIES_ERROR,
    ),
)
ARTIFACT = grid_artifact(20, POET, group=0, claims=CLAIMS)
