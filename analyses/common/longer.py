"""AdamW trained on more tokens, and where another run stands against it (Figure 9, and the controls at equal cost)."""

import math

import numpy as np
import pandas as pd

from analyses.common.grid import BASELINE, cell_runs
from poet.training.spec import RunSpec
from suite.scale import Scale

#: Multiples of the model's steps that AdamW is trained for.
FACTORS = (1, 2, 3)


def longer_runs(scale: Scale, model: str) -> dict[int, list[RunSpec]]:
    """AdamW for each of :data:`FACTORS`, by seed: own cosine schedules, and AdamW's learning rate of that model."""
    steps = scale.settings.models[model].steps
    return {factor: cell_runs(scale, model, BASELINE, steps=factor * steps) for factor in FACTORS}


def crossing(history: pd.DataFrame, level: float) -> float:
    """Tokens after which a run's validation perplexity first is at or below a level; NaN if it never is.

    Between two evaluations of its history the logarithm of the perplexity is taken to be linear in tokens."""
    evaluated = history.dropna(subset="validation_perplexity")
    tokens, logs = evaluated.tokens.to_numpy(), np.log(evaluated.validation_perplexity.to_numpy())
    below = np.flatnonzero(logs <= math.log(level))
    if not len(below):
        return math.nan
    last = below[0]
    if last == 0:
        return float(tokens[0])
    share = (math.log(level) - logs[last - 1]) / (logs[last] - logs[last - 1])
    return float(tokens[last - 1] + share * (tokens[last] - tokens[last - 1]))
