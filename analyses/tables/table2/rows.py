"""The paper's rows of Table 2, by name and by budget."""

import pandas as pd

from analyses.common.published import read_published
from poet.methods import table_rows

PRINTED = read_published("table2").astype({"perplexity": float})
#: The paper's rows. Its claims do not cover rows that were added here.
ROWS = tuple(dict.fromkeys(PRINTED.variant))
FS, BS, LORA, GALORE = "poet-fs-1_2", "poet-bs-b256", "lora-r64", "galore"
#: Rows of POET by rising budget, block-stochastic and fully stochastic.
BY_BUDGET = tuple(tuple(row for row in ROWS if row.startswith(prefix)) for prefix in ("poet-bs", "poet-fs"))
POET = tuple(row for family in BY_BUDGET for row in family)


def label(row: str) -> str:
    """A row's name in the table."""
    return table_rows()[row][1].label


def printed(model: str) -> pd.DataFrame:
    """The printed rows of a model."""
    return PRINTED[PRINTED.model == model]
