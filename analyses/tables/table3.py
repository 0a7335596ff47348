"""Table 3: AdamW and POET on the 3B model.

The paper reuses the hyperparameters of its 1.3B model and a tenth of that model's tokens. So does every scale that has
a 3b model: its rates are those of 1.3b (``learning_rates.borrow`` of the scale).
"""

import pandas as pd

from analyses.common.ablation import ablation, perplexity_table
from analyses.common.claim_forms import ordering, printed_perplexity
from analyses.common.grid import cell_runs
from analyses.common.published import read_published
from poet.training.spec import RunSpec
from suite.context import Context
from suite.scale import Scale

MODEL = "3b"
#: Printed name of a row to its key.
ROWS = {"AdamW": "adamw", "POET FS b=1/2": "poet-fs-1_2"}


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each row, by seed."""
    return {label: cell_runs(scale, MODEL, key) for label, key in ROWS.items()}


def table(context: Context) -> pd.DataFrame:
    """One line per method."""
    frame = perplexity_table(context, "table3", specs(context.scale))
    frame["learning_rates_from"] = [context.scale.learning_rate_source(MODEL, ROWS[method]) for method in frame.method]
    return frame


def sentences(frame: pd.DataFrame) -> list[str]:
    ratios = [frame[column][1] / frame[column][0] for column in ("published", "measured")]
    rates = (f"{line.method}: {line.learning_rates} from {line.learning_rates_from}" for line in frame.itertuples())
    return [
        f"POET's perplexity over AdamW's: printed {ratios[0]:.3f}, measured {ratios[1]:.3f}.",
        f"Learning rates: {'; '.join(rates)}.",
    ]


PRINTED = read_published("table3").set_index("method").perplexity.astype(float)
ADAMW, POET = ROWS
CLAIMS = (
    ordering(
        key="table3-poet-below-adamw", place="Section 5.1, Table 3",
        says="POET keeps its advantage over AdamW at 3B.",
        differences=f"{POET} minus AdamW at 3b",
        pairs=lambda scale: [(specs(scale)[POET], specs(scale)[ADAMW])],
    ),
    printed_perplexity(
        key="table3-perplexity-poet", place="Table 3",
        says=f"{POET} reaches a validation perplexity of {PRINTED[POET]:.2f} at 3B.", published=PRINTED[POET],
        specs=lambda scale: specs(scale)[POET],
    ),
)
ARTIFACT = ablation(
    3, "Validation perplexity of a LLaMA 3B model, trained on a tenth of the 1.3B model's tokens with its hyperparameters.", MODEL, specs,
    {"method": "Method"}, CLAIMS, table=table, sentences=sentences,
)
