"""Figure 23: error of the Cayley-Neumann approximation of every R of block 0, first tenth of training, k = 0 to 5.

Runs and steps: ``analyses.figures.common.orthogonality``. The paper's label is "r_right_orth". Its caption says R, which is the
left factor of W_RP = R W0 P. The two agree: ``nn.Linear`` stores the transpose, P' W0' R', with R on the right. The claim is
about Figures 23 and 24 together.
"""

import numpy as np

from analyses.common.evidence import over_seeds
from analyses.figures.common.orthogonality import MEDIAN, PRINTED_TERMS, artifact, by_terms, read_figure10, runs
from poet.training.memory import PROJECTIONS
from suite.claim import Claim

BLOCK = [(0, projection, side) for projection in PROJECTIONS for side in "RP"]
#: In Figure 10 the curves from k = 2 on end in one band. A difference up to its width counts as negligible.
LOW, HIGH = read_figure10()[3, "end of the last merge period, first tenth"]
NEGLIGIBLE = (LOW - HIGH, HIGH - LOW)


CLAIMS = (
    Claim(
        key="figure23-k3-like-k4", place="Appendix J", kind="bound",
        says="The difference of the error between k = 3 and k = 4 is negligible.",
        rule="Error with k = 3 minus k = 4 at the ends of the merge periods (median of the first tenth of training), median over R and "
        "P of block 0: no more, either way, than the width of the band in which both end in Figure 10.",
        unit="e_orth", region=NEGLIGIBLE,
        measure=lambda context: over_seeds(
            [float(np.median(m[3] - m[4])) for m in by_terms(context, BLOCK, MEDIAN.format("first"))],
            runs(context.scale, PRINTED_TERMS),
        ),
    ),
)
ARTIFACT = artifact(
    23, "Approximation error of the orthogonal matrices R of block 0, by the number k of Neumann terms.",
    lambda scale: [(0, projection, "R") for projection in PROJECTIONS], claims=CLAIMS,
)
