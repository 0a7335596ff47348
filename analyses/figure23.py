"""Figure 23: error of the Cayley-Neumann approximation of every R of block 0, first tenth of training, k = 0 to 5.

Runs and steps: ``analyses.orthogonality``. The paper's label is "r_right_orth", and its caption says R, which stands on the left
of W_RP = R W0 P. Both are right: ``nn.Linear`` stores the transpose, P' W0' R', with R on the right.
"""

from analyses.orthogonality import artifact
from poet.training.memory import PROJECTIONS

ARTIFACT = artifact(
    23,
    "Approximation error of the orthogonal matrices R of block 0, by the number k of Neumann terms.",
    lambda scale: [(0, projection, "R") for projection in PROJECTIONS],
)
