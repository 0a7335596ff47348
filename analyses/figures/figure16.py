"""Figure 16: how often POET-FS updates each element of a 64 x 64 weight in 100 steps with T_m = 1.

The counts and their expected values are described in :mod:`analyses.figures.common.coverage`. The paper prints no
numbers for this figure. It says that updates are fewer than with POET-BS, and unevenly spread.
"""

from fractions import Fraction

import pandas as pd

from analyses.common.evidence import BELOW_ONE, exactly, of_line, over_seeds
from analyses.figures.common.coverage import MOST, SEEDS, STEPS, coverage_artifact, relative_spread
from poet import POETConfig
from suite.claim import POSITIVE, Claim, Evidence
from suite.context import Context

#: The paper's "large iteration counts", as a multiple of the 100 steps of the figure.
MANY = 16
VARIANTS = {
    f"POET-FS (b={Fraction(b)})": POETConfig(variant="fs", budget=b, merge_every=1) for b in (1 / 8, 1 / 4, 1 / 2)
}


def counted(context: Context, quantity: str) -> pd.DataFrame:
    """The lines of ``results/figure16.csv`` about a quantity, one for each budget."""
    frame = context.table("figure16")
    return frame[frame.quantity == quantity]


def most_updated(context: Context) -> Evidence:
    means = counted(context, "mean")
    return exactly(float(means.measured.max() / MOST), note="over seeds of the simulation", n=int(means.n.iloc[0]))


def spread(context: Context) -> Evidence:
    spreads = counted(context, "std over elements")
    return of_line(next(spreads.loc[[spreads.measured.idxmin()]].itertuples()), "n counts seeds of the simulation")


def evens_out(context: Context) -> Evidence:
    steps = (STEPS, MANY * STEPS)
    spreads = [[sum(relative_spread(v, seed, n) for v in VARIANTS.values()) for n in steps] for seed in SEEDS]
    return over_seeds([long / short for short, long in spreads], note="n counts seeds of the simulation")


CLAIMS = (
    Claim(
        key="figure16-fewer-updates", place="Appendix H; Figure 16", kind="ordering",
        says="POET-FS updates an element of the weight fewer times than POET-BS, in the mean over elements (the paper: significantly fewer, each).",
        rule="Mean number of updates, the largest of the three budgets, over the 200 of POET-BS: below 1. (At unequal numbers of "
        "parameters; see the errata.)",
        unit="of 200 updates", region=BELOW_ONE, measure=most_updated,
    ),
    Claim(
        key="figure16-uneven", place="Appendix H; Figure 16; Section 5.1", kind="ordering",
        says="POET-FS spreads its updates unevenly over the elements.",
        rule="Standard deviation of the number of updates over the elements, the least of the three budgets: above the 0 of POET-BS.",
        unit="updates", region=POSITIVE, measure=spread,
    ),
    Claim(
        key="figure16-evens-out", place="Appendix H", kind="trend",
        says="The unevenness is less of a problem after many iterations.",
        rule=f"Standard deviation over mean of the elements' updates, all budgets together, after {MANY} times as many steps over "
        "that after 100: below 1.",
        unit="ratio", region=BELOW_ONE, measure=evens_out,
    ),
)
ARTIFACT = coverage_artifact(16, "POET-FS", VARIANTS, "distribution over the elements, and the binomial distribution that independent sampling gives", CLAIMS)
