"""``tools/rereading.py`` on histories with and without rows learned by heart."""

import math

import numpy as np
import pandas as pd
import pytest

from tools.rereading import stretches


@pytest.mark.parametrize("by_heart", [0.0, 0.05])
def test_what_is_learned_by_heart_shows_in_the_second_reading_alone(by_heart):
    tokens = np.arange(10, 1301, 10)
    validation = 4 - 0.001 * tokens
    noise = np.random.default_rng(0).normal(0, 0.01, len(tokens))
    history = pd.DataFrame({"tokens": tokens, "train_loss": validation + 0.02 - by_heart * (tokens > 1000) + noise})
    history["validation_perplexity"] = np.where(tokens % 100 == 0, np.exp(validation), math.nan)
    found = stretches(history, 1000)
    for (mean, error), expected in zip(found, (0.02, 0.02, 0.02 - by_heart), strict=True):
        assert abs(mean - expected) < 4 * error < 0.02
