"""Table 10: the hyperparameters of POET-BS, as printed and as ``config/scales/paper.yaml`` has them.

The printed batch size is the rows of one micro-batch on one GPU: rows of a step = batch size x grad acc. x GPUs.
"""

from __future__ import annotations

from analyses.tables.common.config_tables import build_hyperparameters, cells_claim
from suite.artifact import Artifact
from suite.context import Context


def build(context: Context) -> None:
    build_hyperparameters(context, ARTIFACT, "bs", {})


ARTIFACT = Artifact(
    label="Table 10",
    caption="Hyperparameters of POET-BS, as printed and as configured at paper scale.",
    outputs=("table10.csv", "table10.md"),
    runs=lambda scale: [], build=build, scale_free=True,
    claims=(cells_claim("table10", "Table 10", "The hyperparameters of POET-BS"),),
)
