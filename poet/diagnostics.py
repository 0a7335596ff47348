"""Scalar diagnostics of a weight matrix: the entropy of its singular values, and the hyperspherical energy of its neurons."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def singular_value_entropy(singular_values: Tensor) -> Tensor:
    """H = -1/log(n) sum_i p_i log p_i with p_i = s_i^2 / sum_j s_j^2 (Section 4, "Dynamics of singular spectrum").

    The paper prints it without the minus sign. ``singular_values`` is (..., n), non-negative, of a floating dtype. The result is (...):
    1 where all singular values are equal, 0 where only one is not zero.

    Raises:
        ValueError: fewer than two singular values.
    """
    n = singular_values.shape[-1]
    if n < 2:
        raise ValueError(f"the entropy of a spectrum is normalized by log n, n >= 2; got n = {n}")
    share = singular_values.square()
    share = share / share.sum(-1, keepdim=True)
    return torch.special.entr(share).sum(-1) / math.log(n)


def hyperspherical_energy(weight: Tensor) -> Tensor:
    """HE(W) = sum over i != j of 1/||w_i - w_j||, neurons w_i at unit norm (Section 2). The pairs are ordered: each counts twice.

    ``weight`` is (n, m), neurons in rows as ``nn.Linear.weight`` stores them (the paper's columns), of a floating dtype. The result is
    (), fp64; infinite if two normalized neurons are equal bit for bit, and very large where rounding alone separates them.
    """
    neurons = torch.nn.functional.normalize(weight.double(), dim=1)
    # pdist has each unordered pair once. It subtracts the vectors; distances from the Gram matrix would cancel near 0.
    return 2 * torch.pdist(neurons).reciprocal().sum()
