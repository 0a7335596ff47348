"""The learning-rate schedule: cosine to a floor (Appendix "Training details")."""

from __future__ import annotations

import math


def cosine(step: int, steps: int, *, minimum_ratio: float = 0.01, warmup_steps: int = 0) -> float:
    """Factor on the peak learning rate at optimizer step ``step``, counted from 0.

    Linear from 0 over ``warmup_steps`` (the first step already moves), then a half cosine from 1 towards
    ``minimum_ratio``, which step number ``steps`` would reach.

    Args:
        step: 0 <= step < steps.
        steps: length of training.
        minimum_ratio: the paper's "minimum learning ratio", 0.01.
        warmup_steps: the paper has none.
    """
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    progress = (step - warmup_steps) / max(1, steps - warmup_steps)
    return minimum_ratio + (1 - minimum_ratio) * 0.5 * (1 + math.cos(math.pi * progress))
