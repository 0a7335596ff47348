"""``tools/rereading.py`` on histories with and without rows learned by heart."""

import math

import numpy as np
import pandas as pd
import pytest

from tools.rereading import readings, stretches

TEXT = 1000


def history(last: int, by_heart: float) -> pd.DataFrame:
    """A run of ``last`` tokens whose training loss falls by ``by_heart`` with each reading after the first."""
    tokens = np.arange(10, last + 1, 10)
    validation = 4 - 0.001 * tokens
    noise = np.random.default_rng(0).normal(0, 0.01, len(tokens))
    found = pd.DataFrame({"tokens": tokens, "train_loss": validation + 0.02 - by_heart * ((tokens - 1) // TEXT) + noise})
    found["validation_perplexity"] = np.where(tokens % 100 == 0, np.exp(validation), math.nan)
    return found


@pytest.mark.parametrize("by_heart", [0.0, 0.05])
@pytest.mark.parametrize(
    ("last", "measure", "falls"), [(1300, stretches, (0, 0, 1)), (3600, readings, (0, 1, 2, 3)), (3000, readings, (0, 1, 2))]
)
def test_what_is_learned_by_heart_shows_from_the_second_reading_on(last, measure, falls, by_heart):
    found = measure(history(last, by_heart), TEXT)
    for (mean, error), times in zip(found, falls, strict=True):
        assert abs(mean - (0.02 - by_heart * times)) < 4 * error < 0.02
