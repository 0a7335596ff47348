"""Figure 13: trace of P over its dimension, for every matrix along training. Run, definitions and rule: ``analyses.figures.common.probing``.

The claims are about Figures 13 and 14 together.
"""

import math

from analyses.common.evidence import share_in
from analyses.figures.common.probing import CONE, TRACE, grid_artifact, rotations, runs
from suite.claim import Claim, Evidence
from suite.context import Context

#: "Generally": more than half of them.
GENERALLY = (math.nextafter(0.5, 1), 1.0)


def traces_in_cone(context: Context) -> Evidence:
    found = rotations(context)
    return share_in(CONE, [r[:, -1, TRACE] for r in found], runs(context.scale), f"{len(found[0])} R and P")


CLAIMS = (
    Claim(
        key="figure13-traces-in-the-cone", place="Appendix A.2; Figures 13 and 14", kind="number",
        says="After training the trace over the dimension is generally in the range of 0.6 to 0.65.",
        rule="Share of all R and P whose trace over their dimension lies in that range at the end: more than half.",
        unit="share of R and P", region=GENERALLY, measure=traces_in_cone,
    ),
)
ARTIFACT = grid_artifact(13, "P", TRACE, CLAIMS)
