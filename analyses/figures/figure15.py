"""Figure 15: how often POET-BS updates each element of a 64 x 64 weight in 100 steps with T_m = 1.

The counts and their expected values are described in :mod:`analyses.figures.common.coverage`. Published: the text says that every element
reaches the maximum of 200 with every block size.
"""

from analyses.common.evidence import exactly
from analyses.common.published import read_published
from analyses.figures.common.coverage import MOST, coverage_artifact
from poet import POETConfig
from suite.claim import Claim, Evidence
from suite.context import Context

VARIANTS = {f"POET-BS (b={b})": POETConfig(variant="bs", block_size=b, merge_every=1) for b in (8, 16, 32)}


def off_the_most(context: Context) -> Evidence:
    frame = context.table("figure15")
    counts = frame[frame.quantity.isin(("min", "mean", "max"))]
    return exactly(float((counts.measured - MOST).abs().max()), note="over seeds of the simulation", n=int(counts.n.iloc[0]))


CLAIMS = (
    Claim(
        key="figure15-every-element", place="Appendix H; Figure 15", kind="invariance",
        says="With POET-BS, whatever the block size, every element of the weight is updated 200 times in 100 steps.",
        rule="Largest distance of the least, the mean and the largest number of updates from 200, over the three block sizes: 0.",
        unit="updates", region=(0.0, 0.0), measure=off_the_most,
    ),
)
PRINTED = {(p.variant, p.quantity): float(p.value) for p in read_published("figure15").itertuples()}
ARTIFACT = coverage_artifact(15, "POET-BS", VARIANTS, "distribution over the elements", CLAIMS, PRINTED)
