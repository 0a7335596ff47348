"""The metrics of GLUE that Table 4 prints, computed by scikit-learn and SciPy."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, matthews_corrcoef


def accuracy(predicted: np.ndarray, targets: np.ndarray) -> float:
    """Share of examples with the right class, 0 to 1. predicted, targets: int64 (examples,)."""
    return float(accuracy_score(targets, predicted))


def matthews(predicted: np.ndarray, targets: np.ndarray) -> float:
    """Matthews' correlation coefficient, -1 to 1; 0 where all predictions are one class. predicted, targets: int64 (examples,)."""
    return float(matthews_corrcoef(targets, predicted))


def pearson(predicted: np.ndarray, targets: np.ndarray) -> float:
    """Pearson's correlation, -1 to 1; 0 where all predictions are equal. predicted, targets: float32 (examples,)."""
    if np.ptp(predicted) == 0:
        return 0.0
    found = float(pearsonr(predicted.astype(np.float64), targets.astype(np.float64)).statistic)
    return found if math.isfinite(found) else 0.0


METRICS = {"accuracy": accuracy, "matthews": matthews, "pearson": pearson}


def without_learning(metric: str, train: np.ndarray, validation: np.ndarray) -> float:
    """The metric of one constant answer for all examples: the training set's most frequent class, or its mean score.

    Args:
        metric: key in :data:`METRICS`.
        train, validation: the targets of the two splits.
    """
    if metric == "pearson":
        constant = train.mean()
    else:
        classes, counts = np.unique(train, return_counts=True)
        constant = classes[counts.argmax()]
    return METRICS[metric](np.full_like(validation, constant), validation)
