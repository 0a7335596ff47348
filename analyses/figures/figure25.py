"""Figure 25: error of the Cayley-Neumann approximation of P of a down projection over the whole run, k = 0 to 5.

Runs, steps and the rule for the matrix: ``analyses.figures.common.orthogonality``.
"""

import math

import numpy as np

from analyses.common.evidence import over_seeds, share_of
from analyses.figures.common.orthogonality import MEDIAN, PRINTED_TERMS, Matrix, artifact, by_terms, middle, run, runs
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context
from suite.scale import Scale

#: k that the paper calls too few (k = 0 does not converge in Table 7; k = 1 or 2 is said to suffice for small models alone).
TOO_FEW = (0, 1)


def matrices(scale: Scale) -> list[Matrix]:
    """P of the matrix that the figure shows."""
    return [(middle(scale), "down_proj", "P")]


def falls(context: Context) -> Evidence:
    """Mean over k >= 1 of log(error in the last tenth / in the first), by seed."""
    first, last = (by_terms(context, matrices(context.scale), MEDIAN.format(where)) for where in ("first", "last"))
    changes = [float(np.log(b[1:] / a[1:]).mean()) for a, b in zip(first, last, strict=True)]
    return over_seeds(changes, runs(context.scale, PRINTED_TERMS))


def diverge(context: Context) -> Evidence:
    seeds = [[run(context.scale, terms, seed) for terms in TOO_FEW] for seed in context.scale.seeds]
    diverged = [any(context.record(spec)["status"] == "diverged" for spec in specs) for specs in seeds]
    return share_of(diverged, [spec for specs in seeds for spec in specs])


CLAIMS = (
    Claim(
        key="figure25-error-falls", place="Appendix J; Figure 25", kind="trend",
        says="The approximation error tends downwards as training progresses.",
        rule="log of the error at the ends of the merge periods, median of the last tenth of training over that of the first, mean over "
        "k = 1 to 4: below 0. (So does the error of a run that only follows the learning rate, which decays to the end here.)",
        unit="nats", region=NEGATIVE, measure=falls,
    ),
    Claim(
        key="figure25-too-few-terms-diverge", place="Appendix J; Figure 25", kind="divergence",
        says="With too few terms of the Neumann series training can diverge.",
        rule="Share of the seeds with which the run with k = 0 or the one with k = 1 diverges (its loss or perplexity is not finite): above 0, as 'can' says.",
        unit="share of seeds", region=(math.nextafter(0, 1), 1.0), measure=diverge,
    ),
)
ARTIFACT = artifact(
    25,
    "Approximation error of the orthogonal matrix P of a down projection along training, by the number k of Neumann terms.",
    matrices, whole_run=True, claims=CLAIMS,
)
