"""Skew-symmetric matrices, the two Cayley maps of Section 3.2.2, Equation (6), and the derivative of packed -> R.

Shapes: ``...`` stands for any leading dimensions, ``B`` for a batch, ``b`` for the block size. A skew-symmetric matrix is
given by its strictly upper triangle, row by row: the packed form, b(b-1)/2 numbers.

The Cayley-Neumann map R = (I + Q)(I + Q + ... + Q^k) is computed from even powers, which are symmetric. With X = Q^2,
E_0 = I and E_i = I + X E_{i-1}:

- k = 2j + 1:    R = (I + X + 2Q) E_j, two products for the paper's k = 3;
- k = 2j >= 2:   R = 2 E_j - I + Q (E_j + E_{j-1});
- k = 0:         R = I + Q.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from poet.kernels import triton_serves
from poet.precision import wide


def packed_size(block_size: int) -> int:
    """Free parameters of a b x b skew-symmetric matrix, b(b-1)/2 (Table 1)."""
    return block_size * (block_size - 1) // 2


def block_size_of(packed: int) -> int:
    """The block size b whose packed form has ``packed`` numbers.

    Raises:
        ValueError: no b has b(b-1)/2 == packed.
    """
    b = (1 + math.isqrt(1 + 8 * packed)) // 2
    if packed_size(b) != packed:
        raise ValueError(f"a packed skew matrix has b(b-1)/2 entries for some b; {packed} fits no b")
    return b


@functools.lru_cache(maxsize=64)
def _triangle(b: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Index tables of size b: flat entry -> packed, the flat entries' signs, packed -> flat upper entry."""
    with torch.inference_mode(False):  # the tables outlive the call, and training has to be able to use them
        rows, columns = torch.triu_indices(b, b, offset=1, device=device)
        source = torch.zeros(b, b, dtype=torch.long, device=device)
        source[rows, columns] = source[columns, rows] = torch.arange(rows.numel(), device=device)
        ones = torch.ones(b, b, dtype=torch.int8, device=device)
        return source.flatten(), (ones.triu(1) - ones.tril(-1)).flatten(), rows * b + columns


def _tables(b: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`_triangle` on the device of ``like``. Tables of traced and simulated tensors (FakeTensor) are not kept."""
    # What an operation makes of it is asked: where tensors are simulated, real ones may be taken too.
    kept = not torch.compiler.is_compiling() and type(like.detach()) is Tensor
    return (_triangle if kept else _triangle.__wrapped__)(b, like.device)


def skew_unpack(packed: Tensor, block_size: int | None = None) -> Tensor:
    """Skew-symmetric matrix from its strictly upper triangle.

    Args:
        packed: (..., b(b-1)/2), any floating dtype.
        block_size: b; read off the last dimension if None (needed for b <= 1 alone).

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
    source, sign, _ = _tables(b, packed)
    return packed.index_select(-1, source).mul_(sign).view(*packed.shape[:-1], b, b)


def skew_pack(q: Tensor) -> Tensor:
    """Strictly upper triangle of (..., b, b), row by row, as (..., b(b-1)/2)."""
    return q.flatten(-2).index_select(-1, _tables(q.shape[-1], q)[2])


def cayley(q: Tensor) -> Tensor:
    """The exact Cayley map R = (I + Q)(I - Q)^-1, Equation (6), left-hand side.

    Args:
        q: (..., b, b) skew-symmetric. Half precision is solved in fp32 and rounded back.

    Returns:
        (..., b, b), orthogonal to rounding, determinant 1.
    """
    precise = q.to(wide(q.dtype))
    identity = torch.eye(q.shape[-1], dtype=precise.dtype, device=q.device)
    # (I + Q) and (I - Q)^-1 commute, so a left solve gives the same matrix.
    return torch.linalg.solve(identity - precise, identity + precise).to(q.dtype)


def cayley_neumann(q: Tensor, terms: int) -> Tensor:
    """The Cayley-Neumann parameterization R = (I + Q)(I + Q + ... + Q^k), Equation (6), right-hand side.

    Args:
        q: (..., b, b) skew-symmetric. Half precision is computed in fp32 and rounded once.
        terms: k >= 0. k = 0 gives I + Q.

    Returns:
        (..., b, b). With C the exact Cayley map, R = C (I - Q^(k+1)), so where the spectral norm of Q is below 1 the
        distance to C falls with k, but the error of R R^T does not fall evenly: ||Q||^(2k+2) for even k, where
        Q^(k+1) is skew and its first order cancels, and 2 ||Q||^(k+1) for odd k. k = 2 is closer to orthogonal than 3.

    Raises:
        ValueError: k < 0.
    """
    if terms < 0:
        raise ValueError(f"the Neumann series needs k >= 0 terms, got {terms}")
    precise = q.to(wide(q.dtype)).reshape(-1, *q.shape[-2:])
    return _series(precise, terms, _even_sums(precise, terms)).to(q.dtype).view(q.shape)


def _add_identity(matrices: Tensor, times: float = 1.0) -> Tensor:
    """``matrices`` with ``times`` added to their diagonals, in place."""
    matrices.diagonal(dim1=-2, dim2=-1).add_(times)
    return matrices


def _even_sums(q: Tensor, terms: int) -> list[Tensor]:
    """[E_1, ..., E_j] of the module's docstring, j = terms // 2: what the map and its derivative share."""
    if terms < 2:
        return []
    square = torch.bmm(q, q)
    sums = [_add_identity(square.clone() if terms > 3 else square)]
    while len(sums) < terms // 2:
        sums.append(_add_identity(torch.bmm(square, sums[-1])))
    return sums


def _pair(sums: list[Tensor]) -> Tensor:
    """E_j + E_{j-1}."""
    return sums[-1] + sums[-2] if len(sums) > 1 else _add_identity(sums[-1].clone())


def _series(q: Tensor, terms: int, sums: list[Tensor]) -> Tensor:
    """The map of q (B, b, b), given its even sums."""
    if terms == 0:
        return _add_identity(q.clone())
    if terms % 2:
        return torch.bmm(sums[0].add(q, alpha=2), sums[-1]) if sums else _add_identity(2 * q + torch.bmm(q, q))
    return _add_identity(torch.baddbmm(sums[-1], q, _pair(sums), beta=2), -1)


def _series_vjp(q: Tensor, grad: Tensor, terms: int) -> Tensor:
    """H (B, b, b), whose part H - H^T is the gradient of a loss by Q, given its gradient by :func:`_series`.

    Three products beside X for the paper's k = 3.
    """
    if terms == 0:
        return grad
    half, sums = terms // 2, _even_sums(q, terms)
    # by_square: gradient by way of X. by_sum: by way of E_i, beginning with E_j. direct: by way of Q itself.
    if terms % 2:
        by_square, times = (torch.bmm(grad, sums[-1]) if sums else grad.clone()), 2.0
        direct = by_square
        if half:
            by_sum = torch.bmm(sums[0].sub(q, alpha=2), grad)
    else:
        by_pair = torch.bmm(q, grad).neg_()
        direct, times = torch.bmm(grad, _pair(sums)), 1.0
        by_sum, by_square = torch.add(by_pair, grad, alpha=2), torch.zeros_like(grad)
    square = _add_identity(sums[0].clone(), -1) if half > 1 else None
    for i in range(half, 0, -1):
        if i == 1:
            by_square = by_sum.add_(by_square)
            break
        by_square = torch.baddbmm(by_square, by_sum, sums[i - 2])
        by_sum = torch.bmm(square, by_sum)
        if i == half and terms % 2 == 0:
            by_sum += by_pair
    # The derivative of X = Q^2 gives -(Xbar Q + Q Xbar), whose skew part is that of -S Q with S = Xbar + Xbar^T.
    return torch.baddbmm(direct, by_square + by_square.mT, q, beta=times, alpha=-1)


def rotation_blocks_reference(packed: Tensor, terms: int | None) -> Tensor:
    """Orthogonal blocks from packed skew matrices.

    Args:
        packed: (B, b(b-1)/2), any floating dtype.
        terms: k of the Cayley-Neumann map, or None for the exact Cayley map.

    Returns:
        (B, b, b), same dtype. Half precision is computed in fp32 and rounded once.
    """
    return _map(skew_unpack(packed.to(wide(packed.dtype))), terms).to(packed.dtype)


def rotation_blocks_vjp_reference(packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
    """Gradient with respect to what :func:`rotation_blocks_reference` was called with.

    Args:
        packed: (B, b(b-1)/2).
        grad: (B, b, b), gradient of the loss with respect to the blocks.
        terms: as in the call.

    Returns:
        (B, b(b-1)/2), the dtype of ``packed``.
    """
    by_q = _map_vjp(skew_unpack(packed.to(wide(packed.dtype))), grad, terms)
    return skew_pack(by_q - by_q.mT).to(packed.dtype)


def _map(q: Tensor, terms: int | None) -> Tensor:
    return cayley(q) if terms is None else cayley_neumann(q, terms)


def _map_vjp(q: Tensor, grad: Tensor, terms: int | None) -> Tensor:
    """H (B, b, b), whose part H - H^T is the gradient by Q."""
    grad = grad.to(q.dtype)
    if terms is not None:
        return _series_vjp(q, grad, terms)
    # (I - Q) R = I + Q, so dR = (I - Q)^-1 dQ (I + R).
    identity = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device)
    return torch.linalg.solve(identity + q, grad) @ (identity + cayley(q)).mT


def rotation_blocks(packed: Tensor, terms: int | None) -> Tensor:
    """:func:`rotation_blocks_reference`, by Triton kernels where they serve: these round small 16-bit blocks more often."""
    if not triton_serves(packed):
        return rotation_blocks_reference(packed, terms)
    from poet.kernels import rotation

    b = block_size_of(packed.shape[-1])
    if terms and rotation.fits_on_chip(b, packed):
        return rotation.cayley_neumann_packed(packed, b, terms)
    return _map(rotation.skew_unpack(packed.float(), b), terms).to(packed.dtype)


def rotation_blocks_vjp(packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
    """:func:`rotation_blocks_vjp_reference`, by Triton kernels where they serve."""
    if not triton_serves(packed):
        return rotation_blocks_vjp_reference(packed, grad, terms)
    from poet.kernels import rotation

    by_q = _map_vjp(rotation.skew_unpack(packed.float(), grad.shape[-1]), grad, terms)
    return rotation.skew_pack_difference(by_q).to(packed.dtype)


def orthogonality_error(r: Tensor) -> Tensor:
    """e_orth = ||R R^T - I||_F / ||I||_F (Section 5.3, Figure 10), for (..., b, b), as (...)."""
    identity = torch.eye(r.shape[-1], dtype=r.dtype, device=r.device)
    return torch.linalg.matrix_norm(r @ r.mT - identity) / math.sqrt(r.shape[-1])
