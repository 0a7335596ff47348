"""Figure 10: error of the Cayley-Neumann approximation of R and P of one weight matrix, first tenth of training, k = 0 to 5.

Runs, steps and the rule for the matrix: ``analyses.orthogonality``. Published ranges were read off the figure for both
matrices together: the peaks of k = 1, and where the errors have come to by the last of the five merges that it shows.
"""

from analyses.orthogonality import artifact, middle, read_figure10

ARTIFACT = artifact(
    10,
    "Approximation error of the orthogonal matrices R and P of a weight matrix, by the number k of Neumann terms.",
    lambda scale: [(middle(scale), "up_proj", side) for side in "RP"],
    published=read_figure10(),
)
