"""Table 8: the architectures of the LLaMA models, as printed and as ``config/scales/paper.yaml`` has them.

The printed intermediate dimension is that of POET-BS, whose block sizes have to divide it (Appendix "Experimental details"). The
paper does not print the dimension of the other methods. It follows from the parameter counts of Table 2, and a note below the
table has it.
"""

from analyses.common.evidence import ALL, exactly
from analyses.common.layout import numbered_table, write_table
from analyses.common.paper_scale import paper_scale
from analyses.common.published import cell, read_published
from analyses.tables.common.config_tables import cells_claim, compare, markdown
from suite.claim import Claim, Evidence
from suite.context import Context

UNITS = {
    "Hidden dimension": "coordinates",
    "Intermediate dimension": "coordinates",
    "Number of attention heads": "heads",
    "Number of hidden layers": "layers",
}
DIMENSIONS = ("Hidden dimension", "Intermediate dimension")
#: A row of Table 2 whose models have the printed intermediate dimension, and a row with the other one.
DIVISIBLE, STANDARD = "poet-bs-b256", "adamw"


def architecture(model: str, row: str = DIVISIBLE) -> dict[str, int]:
    """The parameters of Table 8 for a model at paper scale, as some row of Table 2 has it."""
    a = paper_scale().run(model, row, 0).architecture
    return dict(zip(UNITS, (a.hidden_size, a.intermediate_size, a.heads, a.layers), strict=True))


def divisible(context: Context) -> Evidence:
    """The share of pairs, of a dimension of Table 8 and a block size of Table 10, in which the block size divides the dimension."""
    sizes = [int(cell(row[name])) for row in read_published("table8").to_dict("records") for name in DIMENSIONS]
    blocks = sorted({int(spec.removeprefix("b=")) for spec in read_published("table10")["Spec."]})
    pairs = [(size, b) for size in sorted(set(sizes)) for b in blocks]
    return exactly(sum(size % b == 0 for size, b in pairs) / len(pairs), n=len(pairs))


CLAIMS = (
    cells_claim("table8", "Table 8", "The architectures of POET-BS and LoRA (others have another d_ff, by Table 2's counts)"),
    Claim(
        key="table8-divisible", place="Appendix E, Model architecture; Tables 8 and 10", kind="invariance",
        says="The dimensions of the linear layers of the POET-BS models are divisible by the block sizes.",
        rule="Share of the pairs of a hidden or intermediate dimension of Table 8 and a block size of Table 10 that divide: all.",
        unit="share of pairs", region=ALL, measure=divisible,
    ),
)


def build(context: Context) -> None:
    frame = compare("table8", lambda model, _: architecture(model), UNITS, {})
    others = {model: architecture(model, STANDARD)["Intermediate dimension"] for model in dict.fromkeys(frame.model)}
    note = (
        "The printed intermediate dimension is the one of POET-BS and LoRA. Not printed, and implied by the parameter "
        f"counts of Table 2 for AdamW, GaLore and POET-FS: {', '.join(f'{size} ({model})' for model, size in others.items())}."
    )
    text = markdown(frame, ARTIFACT, ("parameter",), "model", [note])
    write_table(context, ARTIFACT, frame.drop(columns="printed"), text)


ARTIFACT = numbered_table(
    8, "Model architectures for the LLaMA variants, as printed and as configured at paper scale.",
    build=build, claims=CLAIMS,
)
