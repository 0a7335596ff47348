"""The pretraining grid of Table 2: every row on every model, which Figures 8 and 26 share, and AdamW on more tokens."""

from fractions import Fraction
from typing import Any

from poet.methods import table_rows
from poet.training.spec import RunSpec
from suite.scale import Scale
from suite.tuning.cells import Cell, cells, run_at, steps_of

MODELS = ("60m", "130m", "350m", "1.3b")
#: The row that all others are compared with.
BASELINE = "adamw"
#: Multiples of the model's steps that AdamW is trained for (Figure 9, and the controls at equal cost).
FACTORS = (1, 2, 3)


def cell_runs(scale: Scale, model: str, row: str, **more: Any) -> list[RunSpec]:
    """The runs of one cell, by seed; ``more`` are further arguments of :meth:`Scale.run`."""
    return [scale.run(model, row, seed, **more) for seed in scale.seeds]


def grid(scale: Scale) -> dict[tuple[str, str], list[RunSpec]]:
    """The runs of every (model, row) of the grid, by seed, without models that the scale lacks."""
    return {(model, row): cell_runs(scale, model, row) for model in MODELS if model in scale.models for row in table_rows()}


def grid_runs(scale: Scale) -> list[RunSpec]:
    """All runs of the grid."""
    return [spec for specs in grid(scale).values() for spec in specs]


def longer_runs(scale: Scale, model: str) -> dict[int, list[RunSpec]]:
    """AdamW's runs by factor (:data:`FACTORS`) and seed.

    Each length has its own cosine schedule. It has the learning rate that was tuned for it or, if none was, AdamW's of the single length.
    """
    return {factor: [_longer(scale, model, factor, seed) for seed in scale.seeds] for factor in FACTORS}


def _longer(scale: Scale, model: str, factor: int, seed: int) -> RunSpec:
    cell = Cell(model, BASELINE, Fraction(factor))
    if factor > 1 and cell in cells(scale):  # the horizon ladder's run has the same name, so that it is trained only once
        tuned = scale.rate_table.chosen(model, BASELINE, steps_of(scale, cell))
        return run_at(scale, cell, seed, tuned.rates if tuned else scale.learning_rates(model, BASELINE))
    return scale.run(model, BASELINE, seed, steps=factor * scale.settings.models[model].steps)
