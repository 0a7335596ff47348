"""The one evaluator: token-weighted perplexity."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from poet.data.rows import IGNORED_LABEL
from poet.training.distribution import Processes


def summed_loss(model: nn.Module, tokens: Tensor, labels: Tensor) -> tuple[Tensor, int]:
    """Next-token cross-entropy, summed.

    Args:
        model: maps ``input_ids`` (B, T) int64 to an object with ``logits`` (B, T, V).
        tokens: (B, T) int64.
        labels: (B, T) int64, ``tokens`` with -100 where padding must not count.

    Returns:
        (sum of the losses in nats as an fp32 scalar, number of predicted tokens).
    """
    targets = labels[:, 1:]
    # Rows are padded on the right, and attention is causal: no real token can see padding, so no mask is needed.
    logits = model(input_ids=tokens).logits[:, :-1]
    loss = nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED_LABEL, reduction="sum"
    )
    return loss, int((targets != IGNORED_LABEL).sum())


@torch.no_grad()
def perplexity(
    model: nn.Module, rows, count: int, batch_rows: int, autocast, processes: Processes | None = None
) -> float:
    """exp(total loss / total predicted tokens) over the first ``count`` rows.

    Every token weighs the same, so the result does not depend on how rows are batched. (The authors' evaluator divides
    by one batch too many, which gives too low a perplexity.)

    Args:
        model: see :func:`summed_loss`; dropout is off while this runs.
        rows: ``poet.data.rows.TokenRows`` or anything with ``batch``, ``labels`` and a length.
        count: rows to use; 0, or more than there are, means all.
        batch_rows: rows of a forward pass.
        autocast: returns a context manager for each forward pass.
        processes: the processes that share the rows. Each has to call this, and gets the same result.

    Returns:
        Perplexity; infinite where the mean loss is 700 nats or more, NaN where it is NaN.

    Raises:
        ValueError: there is no token to predict.
    """
    count = min(count or len(rows), len(rows))
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    processes = processes or Processes()
    total, predicted = 0.0, 0
    for start in range(processes.rank * batch_rows, count, processes.size * batch_rows):
        batch = rows.batch(range(start, min(start + batch_rows, count)))
        labels = rows.labels(batch)
        with autocast():
            loss, tokens = summed_loss(model, batch.to(device), labels.to(device))
        total += loss.item()
        predicted += tokens
    model.train(was_training)
    total, predicted = processes.sum(total, predicted)
    if not predicted:
        raise ValueError(f"none of the {count} validation rows has a token to predict: use longer rows or more of them")
    mean = total / predicted
    return math.exp(mean) if mean < 700 else (math.inf if mean == mean else math.nan)
