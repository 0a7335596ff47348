"""Skew-symmetric matrices, the two Cayley maps of Section 3.2.2, Equation (6), and the VJP of packed -> R.

Shapes: ``...`` stands for any leading dimensions, ``B`` for a batch, ``b`` for the block size. A skew-symmetric matrix is
stored as its strictly upper triangle, row by row: the packed form, b(b-1)/2 elements.

The Cayley-Neumann map R = (I + Q)(I + Q + ... + Q^k) is computed from even powers, which are symmetric. With X = Q^2,
E_0 = I and E_i = I + X E_{i-1}:

- k = 2j + 1:    R = (I + X + 2Q) E_j, two products for the paper's k = 3;
- k = 2j >= 2:   R = 2 E_j - I + Q (E_j + E_{j-1});
- k = 0:         R = I + Q.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from poet.kernels import triton_serves
from poet.precision import cast, wide


def packed_size(block_size: int) -> int:
    """Free parameters of a b x b skew-symmetric matrix, b(b-1)/2 (Section 4, below Lemma 1; Table 1 counts two such blocks for POET-FS)."""
    return block_size * (block_size - 1) // 2


def block_size_of(packed: int) -> int:
    """The block size b whose packed form has ``packed`` elements.

    Raises:
        ValueError: no b has b(b-1)/2 == packed.
    """
    b = (1 + math.isqrt(1 + 8 * packed)) // 2
    if packed_size(b) != packed:
        raise ValueError(f"a packed skew matrix has b(b-1)/2 entries for some b; {packed} fits no b")
    return b


class _Constants(NamedTuple):
    """Index tables and identity of a block size: functions of b, dtype and device alone.

    Attributes:
        source: (b^2,) int32, index of the packed element for each element of the flattened Q.
        sign: (b^2,), its sign: 1 above the diagonal, -1 below, 0 on it.
        upper: (b(b-1)/2,) int32, index into the flattened Q for each packed element.
        identity: (b, b).
    """

    source: Tensor
    sign: Tensor
    upper: Tensor
    identity: Tensor


@functools.lru_cache(maxsize=64)
def _kept_constants(b: int, dtype: torch.dtype, device: torch.device) -> _Constants:
    with torch.inference_mode(False):  # they are cached: training may use them after inference
        rows, columns = torch.triu_indices(b, b, offset=1, device=device, dtype=torch.int32)
        source = torch.zeros(b, b, dtype=torch.int32, device=device)
        source[rows, columns] = source[columns, rows] = torch.arange(rows.numel(), dtype=torch.int32, device=device)
        ones = torch.ones(b, b, dtype=dtype, device=device)
        sign = (ones.triu(1) - ones.tril(-1)).flatten()
        return _Constants(source.flatten(), sign, rows * b + columns, torch.eye(b, dtype=dtype, device=device))


def _constants(b: int, like: Tensor) -> _Constants:
    """The constants in the dtype and on the device of ``like``. Traced and fake tensors (FakeTensor) are not cached."""
    # The result of an operation has the type to check: under a FakeTensorMode ``like`` itself may be a real tensor.
    kept = not torch.compiler.is_compiling() and type(like.detach()) is Tensor
    return (_kept_constants if kept else _kept_constants.__wrapped__)(b, like.dtype, like.device)


def skew_unpack(packed: Tensor, block_size: int | None = None) -> Tensor:
    """Skew-symmetric matrix Q from its strictly upper triangle.

    Args:
        packed: (..., b(b-1)/2), any floating dtype.
        block_size: b; inferred from the last dimension if None, which is ambiguous for b <= 1 only.

    Returns:
        (..., b, b), same dtype, Q = -Q^T.

    Raises:
        ValueError: the last dimension is not b(b-1)/2.
    """
    b = block_size_of(packed.shape[-1]) if block_size is None else block_size
    if packed_size(b) != packed.shape[-1]:
        raise ValueError(f"block size {b} needs {packed_size(b)} packed entries, got {packed.shape[-1]}")
    if b < 2:
        return packed.new_zeros(*packed.shape[:-1], b, b) + packed.sum()  # zero, with a gradient
    constants = _constants(b, packed)
    return packed.index_select(-1, constants.source).mul_(constants.sign).view(*packed.shape[:-1], b, b)


def skew_pack(q: Tensor) -> Tensor:
    """Strictly upper triangle of ``q`` (..., b, b), row by row: (..., b(b-1)/2), same dtype."""
    return q.flatten(-2).index_select(-1, _constants(q.shape[-1], q).upper)


def cayley(q: Tensor) -> Tensor:
    """The exact Cayley map R = (I + Q)(I - Q)^-1, Equation (6), left-hand side.

    q is (..., b, b) skew-symmetric, any floating dtype; R has its shape and dtype, is orthogonal to rounding and has determinant 1.
    Half precision is solved in fp32 and rounded back.
    """
    precise = q.to(wide(q.dtype))
    identity = torch.eye(q.shape[-1], dtype=precise.dtype, device=q.device)
    # (I + Q) and (I - Q)^-1 commute, so a left solve gives the same matrix.
    return torch.linalg.solve(identity - precise, identity + precise).to(q.dtype)


def cayley_neumann(q: Tensor, terms: int) -> Tensor:
    """The Cayley-Neumann parameterization R = (I + Q)(I + Q + ... + Q^k), Equation (6), right-hand side.

    Args:
        q: (..., b, b) skew-symmetric, any floating dtype. Half precision is computed in fp32 and rounded once.
        terms: k >= 0. k = 0 gives I + Q.

    Returns:
        (..., b, b), same dtype. With C the exact Cayley map, R = C (I - Q^(k+1)). So where the spectral norm of Q is below 1,
        the distance to C falls with k. The error of R R^T is not monotonic in k: it is ||Q||^(2k+2) for even k, where
        Q^(k+1) is skew-symmetric and its first order cancels, and 2 ||Q||^(k+1) to first order for odd k. For a small Q, k = 2 is
        therefore closer to orthogonal than k = 3.

    Raises:
        ValueError: k < 0.
    """
    if terms < 0:
        raise ValueError(f"the Neumann series needs k >= 0 terms, got {terms}")
    precise = cast(q, wide(q.dtype)).reshape(-1, *q.shape[-2:])
    return cast(_series(precise, terms, _even_sums(precise, terms)), q.dtype).view(q.shape)


def _even_sums(q: Tensor, terms: int) -> list[Tensor]:
    """[E_0, ..., E_j] of the module's docstring, j = terms // 2, which the map and its VJP share. E_0 is (b, b), the others (B, b, b)."""
    sums = [_constants(q.shape[-1], q).identity]
    if terms > 1:
        sums.append(torch.baddbmm(sums[0], q, q))
    if terms > 3:
        square = sums[1] - sums[0]
        while len(sums) <= terms // 2:
            sums.append(torch.baddbmm(sums[0], square, sums[-1]))
    return sums


def _series(q: Tensor, terms: int, sums: list[Tensor]) -> Tensor:
    """The Cayley-Neumann map of q (B, b, b), given its even sums."""
    if terms == 0:
        return q + sums[0]
    if terms == 1:
        return torch.baddbmm(sums[0], q, q).add_(q, alpha=2)
    if terms % 2:
        return torch.bmm(sums[1].add(q, alpha=2), sums[-1])
    return torch.baddbmm(sums[-1], q, sums[-1] + sums[-2], beta=2).sub_(sums[0])


def _series_vjp(q: Tensor, grad: Tensor, terms: int) -> Tensor:
    """VJP of :func:`_series`: H (B, b, b) such that H - H^T is the gradient with respect to Q, given that with respect to R.

    Three products beside X for the paper's k = 3.
    """
    if terms == 0:
        return grad
    half, sums = terms // 2, _even_sums(q, terms)
    # by_square: the gradient with respect to X. by_sum: with respect to E_i, from E_j on. direct: that of Q outside X and E_i.
    if terms % 2:
        direct = by_square = torch.bmm(grad, sums[-1]) if half else grad
        by_sum, times = torch.bmm(sums[1].sub(q, alpha=2), grad) if half else None, 2.0
    else:
        by_pair = torch.bmm(q, grad).neg_()
        direct, times = torch.bmm(grad, sums[-1] + sums[-2]), 1.0
        by_sum, by_square = torch.add(by_pair, grad, alpha=2), torch.zeros_like(grad)
    for i in range(half, 1, -1):
        by_square = torch.baddbmm(by_square, by_sum, sums[i - 1])
        by_sum = torch.bmm(sums[1] - sums[0], by_sum)
        if i == half and terms % 2 == 0:
            by_sum += by_pair
    if half:
        by_square = by_sum.add_(by_square)
    # The VJP of X = Q^2 is -(Xbar Q + Q Xbar). Its skew-symmetric part is that of -S Q with S = Xbar + Xbar^T.
    return torch.baddbmm(direct, by_square + by_square.mT, q, beta=times, alpha=-1)


def rotation_blocks_reference(packed: Tensor, terms: int | None) -> Tensor:
    """Orthogonal blocks from packed skew-symmetric matrices, Equation (6): (B, b(b-1)/2) of any floating dtype -> (B, b, b), same dtype.

    ``terms`` is k of the Cayley-Neumann map, or None for the exact Cayley map. Half precision is computed in fp32 and rounded once.
    """
    return cast(_map(skew_unpack(cast(packed, wide(packed.dtype))), terms), packed.dtype)


def rotation_blocks_vjp_reference(packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
    """VJP of :func:`rotation_blocks_reference`: the gradient with respect to ``packed``, of its shape and dtype.

    ``packed`` and ``terms`` are as in that call; ``grad`` (B, b, b) is the gradient of the loss with respect to the blocks.
    """
    by_q = _map_vjp(skew_unpack(cast(packed, wide(packed.dtype))), grad, terms)
    return cast(skew_pack(by_q - by_q.mT), packed.dtype)


def _map(q: Tensor, terms: int | None) -> Tensor:
    return cayley(q) if terms is None else cayley_neumann(q, terms)


def _map_vjp(q: Tensor, grad: Tensor, terms: int | None) -> Tensor:
    """VJP of :func:`_map`: H (B, b, b) such that H - H^T is the gradient with respect to Q."""
    grad = cast(grad, q.dtype)
    if terms is not None:
        return _series_vjp(q, grad, terms)
    # (I - Q) R = I + Q, so dR = (I - Q)^-1 dQ (I + R).
    identity = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device)
    return torch.linalg.solve(identity + q, grad) @ (identity + cayley(q)).mT


def rotation_blocks(packed: Tensor, terms: int | None) -> Tensor:
    """:func:`rotation_blocks_reference`, by Triton kernels where :func:`poet.kernels.triton_serves`.

    The kernels round intermediate products of small half-precision blocks; the reference rounds the result alone.
    """
    if not triton_serves(packed):
        return rotation_blocks_reference(packed, terms)
    from poet.kernels import rotation

    b = block_size_of(packed.shape[-1])
    if terms and rotation.fits_on_chip(b, packed):
        return rotation.cayley_neumann_packed(packed, b, terms)
    return _map(rotation.skew_unpack(packed.float(), b), terms).to(packed.dtype)


def rotation_blocks_vjp(packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
    """:func:`rotation_blocks_vjp_reference`, by Triton kernels where :func:`poet.kernels.triton_serves`."""
    if not triton_serves(packed):
        return rotation_blocks_vjp_reference(packed, grad, terms)
    from poet.kernels import rotation

    by_q = _map_vjp(rotation.skew_unpack(packed.float(), grad.shape[-1]), grad, terms)
    return rotation.skew_pack_difference(by_q).to(packed.dtype)


def orthogonality_error(r: Tensor) -> Tensor:
    """e_orth = ||R R^T - I||_F / ||I||_F (Section 5.3, Figure 10): (..., b, b) fp32 or fp64 -> (...), same dtype; 0 if orthogonal."""
    identity = torch.eye(r.shape[-1], dtype=r.dtype, device=r.device)
    return torch.linalg.matrix_norm(r @ r.mT - identity) / math.sqrt(r.shape[-1])
