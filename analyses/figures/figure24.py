"""Figure 24: error of the Cayley-Neumann approximation of every P of block 0, first tenth of training, k = 0 to 5.

Runs and steps: ``analyses.figures.common.orthogonality``; the paper's label "r_left_orth" and its caption, which says P, agree as in Figure 23.
"""

from analyses.figures.common.orthogonality import artifact
from poet.training.memory import PROJECTIONS

ARTIFACT = artifact(
    24, "Approximation error of the orthogonal matrices P of block 0, by the number k of Neumann terms.",
    lambda scale: [(0, projection, "P") for projection in PROJECTIONS],
)
