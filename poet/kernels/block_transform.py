"""The two-sided block transform of a weight, and its pull-back to the blocks.

Shape suffixes: ``n`` outputs (rows of ``nn.Linear.weight``), ``m`` inputs (columns), ``k`` blocks on one side, ``b`` block
size of that side. The weight is in the permuted basis: the coordinates that a side's blocks act on come first, block
after block, so that each block is a contiguous range. A side with fewer than ``n / b`` (or ``m / b``) blocks leaves the
remaining coordinates as they are (fully stochastic SPO has one block, block-stochastic SPO covers every coordinate).
"""

from __future__ import annotations

import torch
from torch import Tensor


def _blocks_first(columns_nm: Tensor, k: int, b: int) -> Tensor:
    """View (n, k*b) as (k, n, b): one matrix of columns per block."""
    return columns_nm.unflatten(1, (k, b)).transpose(0, 1)


def rotate_inputs(weight_nm: Tensor, g_r_kbb: Tensor | None) -> Tensor:
    """``weight @ diag(G_1, ..., G_k, I)^T``: the R side of Equation (3) for a weight stored as (out, in).

    Args:
        weight_nm: (n, m), permuted basis.
        g_r_kbb: (k, b, b) with k*b <= m, or None for R = I.

    Returns:
        (n, m); ``weight_nm`` itself where there is nothing to rotate.
    """
    if g_r_kbb is None:
        return weight_nm
    k, b, _ = g_r_kbb.shape
    covered = k * b
    if k == 1:
        rotated = weight_nm[:, :covered] @ g_r_kbb[0].mT
    else:
        rotated = torch.bmm(_blocks_first(weight_nm[:, :covered], k, b), g_r_kbb.mT)
        rotated = rotated.transpose(0, 1).reshape(-1, covered)
    if covered == weight_nm.shape[1]:
        return rotated
    return torch.cat((rotated, weight_nm[:, covered:]), dim=1)


def rotate_outputs(weight_nm: Tensor, g_p_kbb: Tensor | None, *, transpose: bool = True) -> Tensor:
    """``diag(G_1, ..., G_k, I)^T @ weight``: the P side of Equation (3) for a weight stored as (out, in).

    Args:
        weight_nm: (n, m), permuted basis.
        g_p_kbb: (k, b, b) with k*b <= n, or None for P = I.
        transpose: False applies ``diag(G, I)`` instead, which the pull-back needs.

    Returns:
        (n, m); ``weight_nm`` itself where there is nothing to rotate.
    """
    if g_p_kbb is None:
        return weight_nm
    k, b, _ = g_p_kbb.shape
    covered = k * b
    left = g_p_kbb.mT if transpose else g_p_kbb
    rotated = torch.bmm(left, weight_nm[:covered].unflatten(0, (k, b))).flatten(0, 1)
    if covered == weight_nm.shape[0]:
        return rotated
    return torch.cat((rotated, weight_nm[covered:]), dim=0)


def block_transform(weight_nm: Tensor, g_r_kbb: Tensor | None, g_p_kbb: Tensor | None) -> Tensor:
    """W_RP in the permuted basis: ``diag(G_P, I)^T @ weight @ diag(G_R, I)^T``, Equation (3).

    Differentiable by autograd in every argument; :func:`block_transform_pullback` is the same derivative without a
    graph, for the factors alone (the base weight is fixed).

    Args:
        weight_nm: (n, m), any floating dtype.
        g_r_kbb, g_p_kbb: (k, b, b) of the same dtype, or None for an identity side; k and b differ between sides.
    """
    return rotate_outputs(rotate_inputs(weight_nm, g_r_kbb), g_p_kbb)


def block_transform_pullback(
    weight_nm: Tensor, g_r_kbb: Tensor | None, g_p_kbb: Tensor | None, grad_nm: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of :func:`block_transform` with respect to the two sets of blocks.

    Args:
        weight_nm, g_r_kbb, g_p_kbb: what the transform was called with.
        grad_nm: (n, m), gradient of the loss with respect to the transformed weight, permuted basis.

    Returns:
        (grad of g_r, grad of g_p), each (k, b, b), or None for an identity side.
    """
    grad_p = None
    if g_p_kbb is not None:
        k, b, _ = g_p_kbb.shape
        half = rotate_inputs(weight_nm, g_r_kbb)[: k * b].unflatten(0, (k, b))
        grad_p = torch.bmm(half, grad_nm[: k * b].unflatten(0, (k, b)).mT)
    if g_r_kbb is None:
        return None, grad_p
    k, b, _ = g_r_kbb.shape
    # Only the columns that R touches carry a gradient to it, so P is undone on those alone.
    grad_half = rotate_outputs(grad_nm[:, : k * b], g_p_kbb, transpose=False)
    columns = weight_nm[:, : k * b]
    grad_r = torch.bmm(_blocks_first(grad_half, k, b).mT, _blocks_first(columns, k, b))
    return grad_r, grad_p
