"""Table 7: terms of the Neumann series.

POET-FS with b = 1/2 on the 130M model with k = 0 to 4 terms; k = 3 is Table 2's run. The paper prints "Not converged" for
k = 0: ``published`` is empty there and the column ``note`` has the words.

Perplexity need not fall from row to row. Where Q has the eigenvalue iq, the factor stretches by |1 - (iq)^(k+1)|: by
sqrt(1 + q^2) for k = 0 but by 1 + q^2 for k = 1, which is further from orthogonal, and by 1 - q^4, which shrinks, for k = 3.
"""

from __future__ import annotations

from analyses.ablation import perplexity_table, write_table
from analyses.artifact import Artifact, Context
from analyses.published import read_published
from analyses.scale import Scale
from poet.training.spec import RunSpec

MODEL, ROW = "130m", "poet-fs-1_2"


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each printed k, by seed."""
    terms = {label: int(label.removeprefix("k=")) for label in read_published("table7").scheme}
    return {
        label: [scale.run(MODEL, ROW, seed, overrides={"neumann_terms": k}) for seed in scale.seeds]
        for label, k in terms.items()
    }


def build(context: Context) -> None:
    frame = perplexity_table(context, "table7", specs(context.scale))
    write_table(context, ARTIFACT, frame, {"scheme": "Scheme"})


ARTIFACT = Artifact(
    label="Table 7",
    caption="Validation perplexity of POET-FS (b=1/2) on LLaMA 130M with k terms of the Neumann series.",
    outputs=("table7.csv", "table7.md"),
    runs=lambda scale: [spec for by_seed in specs(scale).values() for spec in by_seed],
    build=build,
    models=(MODEL,),
)
