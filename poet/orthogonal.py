"""Skew-symmetric matrices and the two Cayley maps (Section 3.2.2, Equation (6) of the paper's source).

Everything is batched: ``...`` stands for any leading dimensions, ``b`` for the block size. A skew-symmetric matrix is
given by its strictly upper triangle, row by row (the "packed" form, b(b-1)/2 numbers).
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor


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
    """Index maps of size b: packed -> flat upper entry, flat entry -> packed, and the sign of each flat entry."""
    with torch.inference_mode(False):  # cached: tensors made in inference mode could not serve training later
        rows, columns = torch.triu_indices(b, b, offset=1, device=device)
        upper = rows * b + columns
        source = torch.zeros(b, b, dtype=torch.long, device=device)
        order = torch.arange(rows.numel(), device=device)
        source[rows, columns] = order
        source[columns, rows] = order
        ones = torch.ones(b, b, dtype=torch.int8, device=device)
        return upper, source.flatten(), ones.triu(1) - ones.tril(-1)


class _Unpack(torch.autograd.Function):
    """Gathers in both directions: scattering (index_put) is many times slower than gathering on a CPU."""

    @staticmethod
    def forward(ctx, packed: Tensor, b: int) -> Tensor:
        _, source, sign = _triangle(b, packed.device)
        if b == 1:
            return packed.new_zeros(*packed.shape[:-1], 1, 1)
        return packed.index_select(-1, source).unflatten(-1, (b, b)) * sign.to(packed.dtype)

    @staticmethod
    def backward(ctx, grad: Tensor):
        # A double backward needs the map to be differentiable again: packing is, and is this map's adjoint.
        return skew_pack(grad - grad.mT), None


def skew_unpack(packed: Tensor, block_size: int | None = None) -> Tensor:
    """Skew-symmetric matrix from its strictly upper triangle.

    Args:
        packed: (..., b(b-1)/2), any floating dtype.
        block_size: b; read off the last dimension if None (needed only for b <= 1).

    Returns:
        (..., b, b), same dtype, Q = -Q^T.

    Raises:
        ValueError: the last dimension is not b(b-1)/2.
    """
    b = block_size_of(packed.shape[-1]) if block_size is None else block_size
    if packed_size(b) != packed.shape[-1]:
        raise ValueError(f"block size {b} needs {packed_size(b)} packed entries, got {packed.shape[-1]}")
    return _Unpack.apply(packed, b)


def skew_pack(q: Tensor) -> Tensor:
    """Strictly upper triangle of (..., b, b), row by row, as (..., b(b-1)/2)."""
    upper, _, _ = _triangle(q.shape[-1], q.device)
    flat = q.reshape(-1, q.shape[-1] * q.shape[-1])
    return flat.index_select(-1, upper).reshape(*q.shape[:-2], upper.numel())


def cayley(q: Tensor) -> Tensor:
    """The exact Cayley map R = (I + Q)(I - Q)^-1, Equation (6), left-hand side.

    Args:
        q: (..., b, b) skew-symmetric, fp32 or fp64 (``torch.linalg`` has no half-precision solve; half-precision
            input is solved in fp32 and rounded back).

    Returns:
        (..., b, b), orthogonal to rounding, determinant 1.
    """
    wide = q.float() if q.dtype in (torch.bfloat16, torch.float16) else q
    identity = torch.eye(q.shape[-1], dtype=wide.dtype, device=q.device)
    # (I + Q) and (I - Q)^-1 commute, so a left solve gives the same matrix.
    return torch.linalg.solve(identity - wide, identity + wide).to(q.dtype)


def cayley_neumann(q: Tensor, terms: int) -> Tensor:
    """The Cayley-Neumann parameterization R = (I + Q)(I + Q + ... + Q^k), Equation (6), right-hand side.

    Computed from the even powers, which are symmetric. With X = Q^2 and E_j = I + X + ... + X^j:

    - k = 2j + 1: R = (I + X + 2Q) E_j, two products for the paper's k = 3;
    - k = 2j:     R = 2 E_j - I + Q (2 E_j - X^j).

    Args:
        q: (..., b, b) skew-symmetric, any floating dtype.
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
    identity = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device)
    if terms == 0:
        return identity + q
    half = terms // 2
    square = q @ q
    if terms == 1:
        return identity + square + 2 * q
    power, partial_sum = square, identity + square
    for _ in range(half - 1):
        power = power @ square
        partial_sum = partial_sum + power
    if terms % 2:
        return (identity + square + 2 * q) @ partial_sum
    return 2 * partial_sum - identity + q @ (2 * partial_sum - power)


def orthogonality_error(r: Tensor) -> Tensor:
    """e_orth = ||R R^T - I||_F / ||I||_F (Section 5.3, Figure 10), for (..., b, b), as (...)."""
    identity = torch.eye(r.shape[-1], dtype=r.dtype, device=r.device)
    return torch.linalg.matrix_norm(r @ r.mT - identity) / math.sqrt(r.shape[-1])
