"""Table 5: how the base weights of POET are initialized.

POET-FS with b = 1/2 on the 60M model under the four schemes of ``poet.initialization``; everything else, learning rates
included, is Table 2's (whose run is the normalized one).
"""

from analyses.common.ablation import ablation, every_pair, printed_order, settings
from analyses.common.claim_forms import ordering
from poet.training.spec import RunSpec
from suite.scale import Scale

MODEL, ROW = "60m", "poet-fs-1_2"
#: Printed name of a scheme to its name in ``poet.initialization``.
SCHEMES = {"Standard": "standard", "Xavier": "xavier", "Uni. spectrum": "uniform_spectrum", "Normalized": "normalized"}


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each scheme, by seed."""
    return settings(scale, MODEL, ROW, {label: {"init": init} for label, init in SCHEMES.items()})


STANDARD, XAVIER, UNIFORM, NORMALIZED = SCHEMES
CLAIMS = (
    ordering(
        key="table5-normalized-best", place="Section 5.3, Table 5",
        says="The normalized initialization leads to the best final performance.",
        differences="normalized minus each other initialization",
        pairs=lambda scale: every_pair(specs(scale), (NORMALIZED,), tuple(SCHEMES)),
    ),
    ordering(
        key="table5-uniform-worst", place="Sections 4 and 5.3, Table 5",
        says="The uniform-spectrum initialization performs poorly: every Gaussian one works better.",
        differences="each other initialization minus uniform spectrum",
        pairs=lambda scale: every_pair(specs(scale), tuple(SCHEMES), (UNIFORM,)),
    ),
    ordering(
        key="table5-xavier-below-standard", place="Table 5",
        says="Of the two common initializations, Xavier is better than standard.",
        differences="Xavier minus standard",
        pairs=lambda scale: every_pair(specs(scale), (XAVIER,), (STANDARD,)),
    ),
    printed_order(5, specs),
)
ARTIFACT = ablation(
    5, "Validation perplexity of POET-FS (b=1/2) on LLaMA 60M under different initializations.", MODEL, specs,
    {"scheme": "Scheme"}, CLAIMS,
)
