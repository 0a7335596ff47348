"""Skew-symmetric matrices and the two Cayley maps (Section 3.2.2, Equation (6) of the paper's source).

Everything is batched: ``...`` stands for any leading dimensions, ``b`` for the block size. A skew-symmetric matrix is
given by its strictly upper triangle, row by row (the "packed" form, b(b-1)/2 numbers).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from poet.kernels import cayley_neumann as _neumann
from poet.kernels import skew as _skew
from poet.kernels.skew import packed_size


def block_size_of(packed: int) -> int:
    """The block size b whose packed form has ``packed`` numbers.

    Raises:
        ValueError: no b has b(b-1)/2 == packed.
    """
    b = (1 + math.isqrt(1 + 8 * packed)) // 2
    if packed_size(b) != packed:
        raise ValueError(f"a packed skew matrix has b(b-1)/2 entries for some b; {packed} fits no b")
    return b


def _one_batch(x: Tensor, own: int) -> Tensor:
    """All but the last ``own`` dimensions as one."""
    return x.reshape(math.prod(x.shape[:-own]), *x.shape[-own:])


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
    return _skew.skew_unpack(_one_batch(packed, 1), b).reshape(*packed.shape[:-1], b, b)


def skew_pack(q: Tensor) -> Tensor:
    """Strictly upper triangle of (..., b, b), row by row, as (..., b(b-1)/2)."""
    return _skew.skew_pack(_one_batch(q, 2), False).reshape(*q.shape[:-2], packed_size(q.shape[-1]))


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

    How it is computed: ``poet.kernels.cayley_neumann``. Differentiable once, within the skew-symmetric matrices: the
    gradient with respect to q is skew-symmetric.

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
    return _neumann.cayley_neumann(_one_batch(q, 2), terms).reshape(q.shape)


def orthogonality_error(r: Tensor) -> Tensor:
    """e_orth = ||R R^T - I||_F / ||I||_F (Section 5.3, Figure 10), for (..., b, b), as (...)."""
    identity = torch.eye(r.shape[-1], dtype=r.dtype, device=r.device)
    return torch.linalg.matrix_norm(r @ r.mT - identity) / math.sqrt(r.shape[-1])
