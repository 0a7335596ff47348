"""Figure 16: how often POET-FS updates each element of a 64 x 64 weight in 100 steps with T_m = 1.

What is counted, and what is expected, stands in :mod:`analyses.coverage`. The paper prints no numbers for it: fewer
updates than with POET-BS, and unevenly spread.
"""

from __future__ import annotations

from fractions import Fraction

from analyses import coverage
from analyses.artifact import Artifact, Context
from poet import POETConfig

VARIANTS = {
    f"POET-FS (b={Fraction(b)})": POETConfig(variant="fs", budget=b, merge_every=1) for b in (1 / 8, 1 / 4, 1 / 2)
}


def build(context: Context) -> None:
    note = "Below: distribution over the elements, and the binomial distribution that independent sampling gives."
    coverage.build(context, ARTIFACT, VARIANTS, {}, note)


ARTIFACT = Artifact(
    label="Figure 16",
    caption="Updates of each element of a 64 x 64 weight by POET-FS after 100 steps with T_m = 1, at most 200.",
    outputs=("figure16.csv", "figures/figure16.png", "figures/figure16.pdf"),
    runs=lambda scale: [],
    build=build,
    scale_free=True,
)
