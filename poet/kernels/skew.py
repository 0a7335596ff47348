"""Packing and unpacking of skew-symmetric matrices.

A skew-symmetric matrix is given by its strictly upper triangle, row by row: the "packed" form, b(b-1)/2 numbers. Both
directions are selections: scattering is many times slower on a CPU.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from poet.kernels.dispatch import on_gpu


def packed_size(block_size: int) -> int:
    """Free parameters of a b x b skew-symmetric matrix, b(b-1)/2 (Table 1)."""
    return block_size * (block_size - 1) // 2


@functools.lru_cache(maxsize=64)
def _triangle(b: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Index maps of size b: packed -> flat upper entry and its mirror, flat entry -> packed, and the flat signs."""
    with torch.inference_mode(False):  # cached: tensors made in inference mode could not serve training later
        rows, columns = torch.triu_indices(b, b, offset=1, device=device)
        source = torch.zeros(b, b, dtype=torch.long, device=device)
        order = torch.arange(rows.numel(), device=device)
        source[rows, columns] = order
        source[columns, rows] = order
        ones = torch.ones(b, b, dtype=torch.int8, device=device)
        return rows * b + columns, columns * b + rows, source.flatten(), (ones.triu(1) - ones.tril(-1)).flatten()


def skew_unpack_reference(packed: Tensor, b: int) -> Tensor:
    """(B, b(b-1)/2) -> (B, b, b), Q = -Q^T, same dtype."""
    if b == 1:
        return packed.new_zeros(len(packed), 1, 1)
    _, _, source, sign = _triangle(b, packed.device)
    return packed.index_select(1, source).mul_(sign).unflatten(1, (b, b))


def skew_pack_reference(q: Tensor, antisymmetrize: bool) -> Tensor:
    """(B, b, b) -> (B, b(b-1)/2): the strictly upper triangle of q, or of q - q^T (the adjoint of unpacking)."""
    upper, lower, _, _ = _triangle(q.shape[-1], q.device)
    flat = q.flatten(1)
    packed = flat.index_select(1, upper)
    return packed.sub_(flat.index_select(1, lower)) if antisymmetrize else packed


@torch.library.custom_op("poet::skew_unpack", mutates_args=(), schema="(Tensor packed, int b) -> Tensor")
def skew_unpack(packed: Tensor, b: int) -> Tensor:
    """:func:`skew_unpack_reference` as an operator: a Triton kernel on a GPU, differentiable any number of times."""
    return skew_unpack_reference(packed, b)


@torch.library.custom_op("poet::skew_pack", mutates_args=(), schema="(Tensor q, bool antisymmetrize) -> Tensor")
def skew_pack(q: Tensor, antisymmetrize: bool) -> Tensor:
    """:func:`skew_pack_reference` as an operator: a Triton kernel on a GPU, differentiable any number of times."""
    return skew_pack_reference(q, antisymmetrize)


@skew_unpack.register_kernel("cuda")
def _(packed: Tensor, b: int) -> Tensor:
    return on_gpu(skew_unpack_reference, packed.dtype)(packed, b)


@skew_pack.register_kernel("cuda")
def _(q: Tensor, antisymmetrize: bool) -> Tensor:
    return on_gpu(skew_pack_reference, q.dtype)(q, antisymmetrize)


@skew_unpack.register_fake
def _(packed: Tensor, b: int) -> Tensor:
    return packed.new_empty(packed.shape[0], b, b)


@skew_pack.register_fake
def _(q: Tensor, antisymmetrize: bool) -> Tensor:
    return q.new_empty(q.shape[0], packed_size(q.shape[-1]))


def _unpack_setup(ctx, inputs, output) -> None:
    ctx.b = inputs[1]


def _unpack_backward(ctx, grad: Tensor):
    return skew_pack(grad, True), None


def _pack_setup(ctx, inputs, output) -> None:
    ctx.b, ctx.antisymmetrize = inputs[0].shape[-1], inputs[1]


def _pack_backward(ctx, grad: Tensor):
    # Of the packed entry (i, j), i < j: 1 at (i, j), and -1 at (j, i) where q^T was taken off.
    full = skew_unpack(grad, ctx.b)
    return (full if ctx.antisymmetrize else full.triu(1)), None


torch.library.register_autograd("poet::skew_unpack", _unpack_backward, setup_context=_unpack_setup)
torch.library.register_autograd("poet::skew_pack", _pack_backward, setup_context=_pack_setup)
