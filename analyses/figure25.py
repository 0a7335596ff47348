"""Figure 25: error of the Cayley-Neumann approximation of P of a down projection over the whole run, k = 0 to 5.

Runs, steps and the rule for the matrix: ``analyses.orthogonality``.
"""

from analyses.orthogonality import artifact, middle

ARTIFACT = artifact(
    25,
    "Approximation error of the orthogonal matrix P of a down projection along training, by the number k of Neumann terms.",
    lambda scale: [(middle(scale), "down_proj", "P")],
    whole_run=True,
)
