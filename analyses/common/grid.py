"""The pretraining grid of Table 2: every row on every model. Figures 8 and 26 and the errata share it."""

from poet.methods import table_rows
from poet.training.spec import RunSpec
from suite.scale import Scale

MODELS = ("60m", "130m", "350m", "1.3b")
#: The row that all others are compared with.
BASELINE = "adamw"


def grid_runs(scale: Scale) -> list[RunSpec]:
    """Every row on every model that the grid and the scale share, for every seed."""
    models = [m for m in MODELS if m in scale.models]
    return [scale.run(model, row, seed) for model in models for row in table_rows() for seed in scale.seeds]


def cell_runs(scale: Scale, model: str, row: str) -> list[RunSpec]:
    """The runs of one cell, by seed."""
    return [scale.run(model, row, seed) for seed in scale.seeds]
