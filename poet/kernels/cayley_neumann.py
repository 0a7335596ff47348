"""The Cayley-Neumann map of a batch of skew-symmetric matrices, and its pull-back (Equation (6), right-hand side).

R = (I + Q)(I + Q + ... + Q^k) is computed from the even powers, which are symmetric. With X = Q^2, E_0 = I and
E_i = I + X E_{i-1}:

- k = 2j + 1:    R = (I + X + 2Q) E_j, two products for the paper's k = 3;
- k = 2j >= 2:   R = 2 E_j - I + Q (E_j + E_{j-1});
- k = 0:         R = I + Q.
"""

from __future__ import annotations

import torch
from torch import Tensor

from poet.kernels.dispatch import on_gpu, wide, without_autocast

#: Promise: relative error (Frobenius norm, against fp64 on the same input) of the map and of its pull-back, for spectral
#: norms of Q up to 1/2, any k and block size. For half precision it is the unit roundoff. Kernels on a GPU round operands as
#: well: the same bound holds for their map, twice it for their pull-back, and in fp32 it grows with the square root of b.
PROMISED_ERROR = {torch.float32: 1e-6, torch.bfloat16: 2**-8, torch.float16: 2**-11}


def _add_identity(matrices: Tensor, times: float = 1.0) -> Tensor:
    matrices.diagonal(dim1=-2, dim2=-1).add_(times)
    return matrices


def even_sums(q: Tensor, terms: int) -> list[Tensor]:
    """[E_1, ..., E_j] of the module's docstring, j = terms // 2: all that the map and its pull-back share."""
    if terms < 2:
        return []
    square = torch.bmm(q, q)
    sums = [_add_identity(square.clone() if terms > 3 else square)]
    while len(sums) < terms // 2:
        sums.append(_add_identity(torch.bmm(square, sums[-1])))
    return sums


def series(q: Tensor, terms: int, sums: list[Tensor]) -> Tensor:
    """The map of q (B, b, b), fp32 or fp64, given its :func:`even_sums`."""
    if terms == 0:
        return _add_identity(q.clone())
    if terms % 2:
        return torch.bmm(sums[0].add(q, alpha=2), sums[-1]) if sums else _add_identity(2 * q + torch.bmm(q, q))
    pair = sums[-1] + sums[-2] if len(sums) > 1 else _add_identity(sums[-1].clone())
    return _add_identity(torch.baddbmm(sums[-1], q, pair, beta=2), -1)


def series_gradient(q: Tensor, grad: Tensor, terms: int, sums: list[Tensor]) -> Tensor:
    """What :func:`series` pulls ``grad`` back to. Of the result H (B, b, b), H - H^T alone has a meaning."""
    if terms == 0:
        return grad
    half = terms // 2
    # by_square: gradient by way of X. by_sum: by way of E_i, beginning with E_j. direct: by way of Q itself.
    if terms % 2:
        by_square, times = (torch.bmm(grad, sums[-1]) if sums else grad.clone()), 2.0
        direct = by_square
        if half:
            by_sum = torch.bmm(sums[0].sub(q, alpha=2), grad)
    else:
        by_pair = torch.bmm(q, grad).neg_()
        pair = sums[-1] + sums[-2] if half > 1 else _add_identity(sums[-1].clone())
        direct, times = torch.bmm(grad, pair), 1.0
        by_sum = torch.add(by_pair, grad, alpha=2)
        by_square = torch.zeros_like(grad)
    square = _add_identity(sums[0].clone(), -1) if half > 1 else None
    for i in range(half, 0, -1):
        if i == 1:
            by_square = by_sum.add_(by_square)
            break
        by_square = torch.baddbmm(by_square, by_sum, sums[i - 2])
        by_sum = torch.bmm(square, by_sum)
        if i == half and terms % 2 == 0:
            by_sum += by_pair
    # X = Q^2 pulls back to -(Xbar Q + Q Xbar), whose skew part is that of -S Q with S = Xbar + Xbar^T.
    return torch.baddbmm(direct, by_square + by_square.mT, q, beta=times, alpha=-1, out=direct)


def cayley_neumann_reference(q: Tensor, terms: int) -> Tensor:
    """(B, b, b) skew-symmetric -> (B, b, b), any k = ``terms`` >= 0; for its error see ``PROMISED_ERROR``."""
    precise = q.to(wide(q.dtype))
    return series(precise, terms, even_sums(precise, terms)).to(q.dtype)


def cayley_neumann_pullback_reference(q: Tensor, grad: Tensor, terms: int) -> Tensor:
    """Gradient of a loss with respect to Q within the skew-symmetric matrices.

    Args:
        q: (B, b, b), what the map was called with.
        grad: (B, b, b), gradient of the loss with respect to R.
        terms: k.

    Returns:
        (B, b, b): the skew-symmetric part of the gradient, same dtype as q. Four products for k = 3.
    """
    precise, g = (t.to(wide(q.dtype)) for t in (q, grad))
    direct = series_gradient(precise, g, terms, even_sums(precise, terms))
    return ((direct - direct.mT) * 0.5).to(q.dtype)


@torch.library.custom_op("poet::cayley_neumann", mutates_args=(), schema="(Tensor q, int terms) -> Tensor")
@without_autocast
def cayley_neumann(q: Tensor, terms: int) -> Tensor:
    """:func:`cayley_neumann_reference` as an operator: Triton kernels on a GPU, differentiable once."""
    return cayley_neumann_reference(q, terms)


@torch.library.custom_op(
    "poet::cayley_neumann_pullback", mutates_args=(), schema="(Tensor q, Tensor grad, int terms) -> Tensor"
)
@without_autocast
def cayley_neumann_pullback(q: Tensor, grad: Tensor, terms: int) -> Tensor:
    """:func:`cayley_neumann_pullback_reference` as an operator: Triton kernels on a GPU."""
    return cayley_neumann_pullback_reference(q, grad, terms)


@cayley_neumann.register_kernel("cuda")
@without_autocast
def _(q: Tensor, terms: int) -> Tensor:
    return on_gpu(cayley_neumann_reference, q.dtype)(q, terms)


@cayley_neumann_pullback.register_kernel("cuda")
@without_autocast
def _(q: Tensor, grad: Tensor, terms: int) -> Tensor:
    return on_gpu(cayley_neumann_pullback_reference, q.dtype)(q, grad.to(q.dtype), terms)


@cayley_neumann.register_fake
def _(q: Tensor, terms: int) -> Tensor:
    return torch.empty_like(q, memory_format=torch.contiguous_format)


@cayley_neumann_pullback.register_fake
def _(q: Tensor, grad: Tensor, terms: int) -> Tensor:
    return torch.empty_like(q, memory_format=torch.contiguous_format)


def _setup(ctx, inputs, output) -> None:
    q, ctx.terms = inputs
    ctx.save_for_backward(q)


def _backward(ctx, grad: Tensor):
    (q,) = ctx.saved_tensors
    return cayley_neumann_pullback(q, grad, ctx.terms), None


torch.library.register_autograd("poet::cayley_neumann", _backward, setup_context=_setup)
