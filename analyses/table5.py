"""Table 5: how the base weights of POET are initialized.

POET-FS with b = 1/2 on the 60M model under the four schemes of ``poet.initialization``; everything else, learning rates
included, is Table 2's (whose run is the normalized one).
"""

from __future__ import annotations

from analyses.ablation import perplexity_table, write_table
from analyses.artifact import Artifact, Context
from analyses.scale import Scale
from poet.training.spec import RunSpec

MODEL, ROW = "60m", "poet-fs-1_2"
#: Printed name of a scheme to its name in ``poet.initialization``.
SCHEMES = {"Standard": "standard", "Xavier": "xavier", "Uni. spectrum": "uniform_spectrum", "Normalized": "normalized"}


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each scheme, by seed."""
    return {
        label: [scale.run(MODEL, ROW, seed, overrides={"init": init}) for seed in scale.seeds]
        for label, init in SCHEMES.items()
    }


def build(context: Context) -> None:
    frame = perplexity_table(context, "table5", specs(context.scale))
    write_table(context, ARTIFACT, frame, {"scheme": "Scheme"})


ARTIFACT = Artifact(
    label="Table 5",
    caption="Validation perplexity of POET-FS (b=1/2) on LLaMA 60M under different initializations.",
    outputs=("table5.csv", "table5.md"),
    runs=lambda scale: [spec for by_seed in specs(scale).values() for spec in by_seed],
    build=build,
    models=(MODEL,),
)
