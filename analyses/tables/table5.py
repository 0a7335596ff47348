"""Table 5: how the base weights of POET are initialized.

POET-FS with b = 1/2 on the 60M model under the four schemes of ``poet.initialization``; everything else, learning rates
included, is Table 2's (whose run is the normalized one).
"""

from __future__ import annotations

from analyses.common.ablation import perplexity_table, table_agreement, write_table
from analyses.common.claim_forms import Pair, ordering, same_order
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Evidence
from suite.context import Context
from suite.scale import Scale

MODEL, ROW = "60m", "poet-fs-1_2"
#: Printed name of a scheme to its name in ``poet.initialization``.
SCHEMES = {"Standard": "standard", "Xavier": "xavier", "Uni. spectrum": "uniform_spectrum", "Normalized": "normalized"}


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each scheme, by seed."""
    return {
        label: [scale.run(MODEL, ROW, seed, overrides={"init": init}) for seed in scale.seeds]
        for label, init in SCHEMES.items()
    }


def _pairs(scale: Scale, lower: tuple[str, ...], higher: tuple[str, ...]) -> list[Pair]:
    """The runs of every two schemes that are not the same, one of ``lower`` and one of ``higher``."""
    cells = specs(scale)
    return [(cells[a], cells[b]) for a in lower for b in higher if a != b]


def agreement(context: Context) -> Evidence:
    """Rank agreement with the printed table."""
    return table_agreement(context, "table5", specs(context.scale))


def build(context: Context) -> None:
    frame = perplexity_table(context, "table5", specs(context.scale))
    write_table(context, ARTIFACT, frame, {"scheme": "Scheme"}, agreement(context))


STANDARD, XAVIER, UNIFORM, NORMALIZED = SCHEMES
CLAIMS = (
    ordering(
        key="table5-normalized-best", place="Section 5.3, Table 5",
        says="The normalized initialization leads to the best final performance.",
        differences="normalized minus each other initialization",
        pairs=lambda scale: _pairs(scale, (NORMALIZED,), tuple(SCHEMES)),
    ),
    ordering(
        key="table5-uniform-worst", place="Sections 4 and 5.3, Table 5",
        says="The uniform-spectrum initialization performs poorly: every Gaussian one works better.",
        differences="each other initialization minus uniform spectrum",
        pairs=lambda scale: _pairs(scale, tuple(SCHEMES), (UNIFORM,)),
    ),
    ordering(
        key="table5-xavier-below-standard", place="Table 5",
        says="Of the two common initializations, Xavier is better than standard.",
        differences="Xavier minus standard",
        pairs=lambda scale: _pairs(scale, (XAVIER,), (STANDARD,)),
    ),
    same_order(key="table5-rank-agreement", place="Table 5", measure=agreement),
)


ARTIFACT = Artifact(
    label="Table 5",
    caption="Validation perplexity of POET-FS (b=1/2) on LLaMA 60M under different initializations.",
    outputs=("table5.csv", "table5.md"),
    runs=lambda scale: [spec for by_seed in specs(scale).values() for spec in by_seed], build=build, models=(MODEL,),
    claims=CLAIMS,
)
