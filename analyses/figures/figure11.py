"""Figure 11: v'Pv of every matrix along training. Run, definitions and rule: ``analyses.figures.common.probing``.

The claim is about Figures 11 and 12 together.
"""

from functools import partial

import numpy as np

from analyses.common.evidence import ALL, share_in
from analyses.figures.common.probed import LABELS
from analyses.figures.common.probing import COSINE, depth, grid_artifact, runs, second_lengths
from suite.claim import POSITIVE, Claim, Evidence
from suite.context import Context


def groups(cosines: np.ndarray, blocks: int) -> list[np.ndarray]:
    """The cosines of R and P in groups, (matrices, s) each: one for each side and matrix type, then one for each block.

    ``cosines`` are in the order of ``analyses.figures.common.probing.both_sides``."""
    by_block = cosines.reshape(2 * len(LABELS), blocks, -1)
    return [*by_block, *by_block.transpose(1, 0, 2)]


def phases_everywhere(context: Context) -> Evidence:
    blocks = depth(context.scale)
    lengths = second_lengths(context, partial(groups, blocks=blocks))
    return share_in(POSITIVE, lengths, runs(context.scale), f"{2 * len(LABELS)} types of matrices and {blocks} blocks")


CLAIMS = (
    Claim(
        key="figure11-phases-everywhere", place="Appendix G; Figures 11 and 12", kind="phase",
        says="The three phases are seen in all types of linear layers and in blocks of all depths.",
        rule="The rule of analyses/phases.py, applied to the R or the P of one matrix type (over blocks) and to all matrices of one "
        "block: share of these groups in which it finds all three phases, and the cosines settle sooner than if they moved in proportion "
        "to the learning rate: all of them.",
        unit="share of groups", region=ALL, measure=phases_everywhere,
    ),
)
ARTIFACT = grid_artifact(11, "P", COSINE, CLAIMS)
