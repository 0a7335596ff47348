"""Packing and unpacking of skew-symmetric matrices on a GPU: the kernels behind :mod:`poet.kernels.skew`.

Both kernels only move data. A program handles one tile (i, j), i <= j, of the upper triangle of one matrix, and with it
the mirrored tile (j, i): each number of the packed form, and of a matrix, is read once and written once. The launch is
fixed: there is nothing to tune that would move fewer bytes, and the result is exact whatever the launch.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from poet.kernels.gpu.tiles import launch_device, upper_tile
from poet.kernels.skew import packed_size

#: Edge of a tile: a row of it is one full cache line in 16-bit numbers.
TILE = 64
NUM_WARPS = 4


@triton.jit
def _unpack_kernel(packed_ptr, q_ptr, b, TILE: tl.constexpr):
    tiles = tl.cdiv(b, TILE)
    pairs = tiles * (tiles + 1) // 2
    matrix = (tl.program_id(0) // pairs).to(tl.int64)  # the offsets below pass 2^31 for 512 matrices of size 2,048
    tile_i, tile_j = upper_tile(tl.program_id(0) % pairs, tiles)
    rows = tile_i * TILE + tl.arange(0, TILE)[:, None]
    columns = tile_j * TILE + tl.arange(0, TILE)[None, :]
    above = (rows < columns) & (columns < b)
    first = matrix * (b * (b - 1) // 2)
    upper = tl.load(packed_ptr + first + (rows * (2 * b - rows - 1) // 2 + columns - rows - 1), mask=above, other=0.0)
    upper = upper.to(tl.float32)  # exact, and the interpreter's arithmetic on bf16 is not
    lower = -tl.trans(upper)
    q_ptr += matrix * b * b
    if tile_i == tile_j:
        tl.store(q_ptr + (rows * b + columns), upper + lower, mask=(rows < b) & (columns < b))
    else:
        tl.store(q_ptr + (rows * b + columns), upper, mask=above)
        mirrored_rows = tile_j * TILE + tl.arange(0, TILE)[:, None]
        mirrored_columns = tile_i * TILE + tl.arange(0, TILE)[None, :]
        tl.store(q_ptr + (mirrored_rows * b + mirrored_columns), lower, mask=mirrored_rows < b)


@triton.jit
def _pack_kernel(q_ptr, packed_ptr, b, ANTISYMMETRIZE: tl.constexpr, TILE: tl.constexpr):
    tiles = tl.cdiv(b, TILE)
    pairs = tiles * (tiles + 1) // 2
    matrix = (tl.program_id(0) // pairs).to(tl.int64)
    tile_i, tile_j = upper_tile(tl.program_id(0) % pairs, tiles)
    rows = tile_i * TILE + tl.arange(0, TILE)[:, None]
    columns = tile_j * TILE + tl.arange(0, TILE)[None, :]
    above = (rows < columns) & (columns < b)
    q_ptr += matrix * b * b
    upper = tl.load(q_ptr + (rows * b + columns), mask=above, other=0.0)
    if ANTISYMMETRIZE:
        mirrored_rows = tile_j * TILE + tl.arange(0, TILE)[:, None]
        mirrored_columns = tile_i * TILE + tl.arange(0, TILE)[None, :]
        below = (mirrored_rows > mirrored_columns) & (mirrored_rows < b)
        lower = tl.load(q_ptr + (mirrored_rows * b + mirrored_columns), mask=below, other=0.0)
        # In fp32, so that half-precision input is rounded once, as torch's own subtraction does.
        upper = (upper.to(tl.float32) - tl.trans(lower).to(tl.float32)).to(upper.dtype)
    first = matrix * (b * (b - 1) // 2)
    tl.store(packed_ptr + first + (rows * (2 * b - rows - 1) // 2 + columns - rows - 1), upper, mask=above)


def _programs(batch: int, b: int) -> tuple[int]:
    tiles = triton.cdiv(b, TILE)
    return (batch * (tiles * (tiles + 1) // 2),)


def skew_unpack(packed: Tensor, b: int) -> Tensor:
    """Q from its packed form; see :func:`poet.kernels.skew.skew_unpack_reference`.

    Args:
        packed: (B, b(b-1)/2), fp16, bf16 or fp32.
        b: block size.

    Returns:
        (B, b, b), same dtype, exact.
    """
    packed = packed.contiguous()
    q = torch.empty(len(packed), b, b, dtype=packed.dtype, device=packed.device)
    if q.numel():
        with launch_device(q):
            _unpack_kernel[_programs(len(packed), b)](packed, q, b, TILE=TILE, num_warps=NUM_WARPS)
    return q


def skew_pack(q: Tensor, antisymmetrize: bool) -> Tensor:
    """The upper triangle of q, or of q - q^T; see :func:`poet.kernels.skew.skew_pack_reference`.

    Args:
        q: (B, b, b), fp16, bf16 or fp32.
        antisymmetrize: take q^T off first.

    Returns:
        (B, b(b-1)/2), same dtype; a difference is rounded once.
    """
    q = q.contiguous()
    batch, b, _ = q.shape
    packed = torch.empty(batch, packed_size(b), dtype=q.dtype, device=q.device)
    if packed.numel():
        with launch_device(q):
            _pack_kernel[_programs(batch, b)](
                q, packed, b, ANTISYMMETRIZE=antisymmetrize, TILE=TILE, num_warps=NUM_WARPS
            )
    return packed
