"""Packing of skew-symmetric matrices, alone and with the Cayley-Neumann map: see :mod:`poet.orthogonal`.

Where Q fits into the registers of one program (b <= 128 in half precision, 64 in fp32; larger ones spill), one program per
matrix reads its packed form and evaluates R = I + Q(2I + ... + Q(2I + Q(2I + Q))) by Horner's rule on panels of rows, so
that Q is never written to memory. Larger blocks are unpacked here and multiplied by ``torch.bmm``.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from poet.kernels.tiles import input_precision, launch_device, upper_tile

#: Edge of a tile of the packing kernels, and warps of a program of every kernel here.
TILE, NUM_WARPS = 64, 4
#: Rows of a panel of the on-chip map, and its maximal block size by bytes of an element.
PANEL = 64
ON_CHIP = {2: 128, 4: 64}


@triton.jit
def _packed_offset(row, column, b):
    """Index of Q[row, column], row < column, in the packed form."""
    return row * (2 * b - row - 1) // 2 + column - row - 1


@triton.jit
def _unpack_kernel(packed_ptr, q_ptr, b, TILE: tl.constexpr):
    """A program writes one tile (i, j), i <= j, of the upper triangle of one Q, and the transposed tile (j, i)."""
    tiles = tl.cdiv(b, TILE)
    pairs = tiles * (tiles + 1) // 2
    matrix = (tl.program_id(0) // pairs).to(tl.int64)  # the offsets below reach 2^31 for 512 matrices of size 2,048
    tile_i, tile_j = upper_tile(tl.program_id(0) % pairs, tiles)
    rows = tile_i * TILE + tl.arange(0, TILE)[:, None]
    columns = tile_j * TILE + tl.arange(0, TILE)[None, :]
    above = (rows < columns) & (columns < b)
    first = matrix * (b * (b - 1) // 2)
    upper = tl.load(packed_ptr + first + _packed_offset(rows, columns, b), mask=above, other=0.0)
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
def _pack_kernel(h_ptr, packed_ptr, b, TILE: tl.constexpr):
    """A program reads the tiles (i, j) and (j, i) of one H and writes tile (i, j) of H - H^T."""
    tiles = tl.cdiv(b, TILE)
    pairs = tiles * (tiles + 1) // 2
    matrix = (tl.program_id(0) // pairs).to(tl.int64)
    tile_i, tile_j = upper_tile(tl.program_id(0) % pairs, tiles)
    rows = tile_i * TILE + tl.arange(0, TILE)[:, None]
    columns = tile_j * TILE + tl.arange(0, TILE)[None, :]
    above = (rows < columns) & (columns < b)
    h_ptr += matrix * b * b
    upper = tl.load(h_ptr + (rows * b + columns), mask=above, other=0.0)
    mirrored_rows = tile_j * TILE + tl.arange(0, TILE)[:, None]
    mirrored_columns = tile_i * TILE + tl.arange(0, TILE)[None, :]
    below = (mirrored_rows > mirrored_columns) & (mirrored_rows < b)
    lower = tl.load(h_ptr + (mirrored_rows * b + mirrored_columns), mask=below, other=0.0)
    first = matrix * (b * (b - 1) // 2)
    tl.store(packed_ptr + first + _packed_offset(rows, columns, b), upper - tl.trans(lower), mask=above)


@triton.jit
def _skew_tile(packed_ptr, rows, columns, b):
    """Q[rows, columns] in fp32, zero outside of Q."""
    low, high = tl.minimum(rows, columns), tl.maximum(rows, columns)
    inside = (low < high) & (high < b)
    found = tl.load(packed_ptr + _packed_offset(low, high, b), mask=inside, other=0.0).to(tl.float32)
    return tl.where(rows < columns, found, -found)


@triton.jit(do_not_specialize=["terms"])
def _cayley_neumann_kernel(
    packed_ptr, out_ptr, b, terms, BLOCK_M: tl.constexpr, BLOCK_B: tl.constexpr, PRECISION: tl.constexpr
):
    """R of one packed matrix; ``terms`` >= 1, ``BLOCK_B`` >= b."""
    matrix = tl.program_id(0).to(tl.int64)
    packed_ptr += matrix * (b * (b - 1) // 2)
    out_ptr += matrix * b * b
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    columns = tl.arange(0, BLOCK_B)[None, :]
    q = _skew_tile(packed_ptr, tl.arange(0, BLOCK_B)[:, None], columns, b).to(dtype)
    for first in range(0, b, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)[:, None]
        # 2I + Q is exact: Q has no diagonal. Later sums are rounded relative to 2 on the diagonal only, where they
        # multiply Q: no larger than the rounding of R's own entries.
        left = (_skew_tile(packed_ptr, rows, columns, b) + tl.where(rows == columns, 2.0, 0.0)).to(dtype)
        for _ in range(terms - 1):
            left = (tl.dot(left, q, input_precision=PRECISION) + tl.where(rows == columns, 2.0, 0.0)).to(dtype)
        result = tl.dot(left, q, input_precision=PRECISION) + tl.where(rows == columns, 1.0, 0.0)
        tl.store(out_ptr + (rows * b + columns), result, mask=(rows < b) & (columns < b))


def on_chip_tile(b: int) -> dict[str, int]:
    """Rows of a panel, and b rounded up to a power of two, 32 at least."""
    block = max(32, triton.next_power_of_2(b))
    return {"BLOCK_M": min(PANEL, block), "BLOCK_B": block}


def fits_on_chip(b: int, packed: Tensor) -> bool:
    """Whether :func:`cayley_neumann_packed` supports block size b in the dtype of ``packed``."""
    return 2 <= b <= ON_CHIP[packed.element_size()]


def _programs(batch: int, b: int) -> tuple[int]:
    tiles = triton.cdiv(b, TILE)
    return (batch * (tiles * (tiles + 1) // 2),)


@torch.library.custom_op("poet::skew_unpack", mutates_args=())
def skew_unpack(packed: Tensor, b: int) -> Tensor:
    """:func:`poet.orthogonal.skew_unpack`: (B, b(b-1)/2) fp32, any strides -> (B, b, b) fp32."""
    packed = packed.contiguous()
    q = packed.new_empty(len(packed), b, b)
    if q.numel():
        with launch_device(q):
            _unpack_kernel[_programs(len(packed), b)](packed, q, b, TILE=TILE, num_warps=NUM_WARPS)
    return q


@torch.library.custom_op("poet::skew_pack_difference", mutates_args=())
def skew_pack_difference(h: Tensor) -> Tensor:
    """The packed form of H - H^T, which is the VJP of unpacking: (B, b, b) fp32, any strides -> (B, b(b-1)/2) fp32."""
    h = h.contiguous()
    batch, b, _ = h.shape
    packed = h.new_empty(batch, b * (b - 1) // 2)
    if packed.numel():
        with launch_device(h):
            _pack_kernel[_programs(batch, b)](h, packed, b, TILE=TILE, num_warps=NUM_WARPS)
    return packed


@torch.library.custom_op("poet::cayley_neumann_packed", mutates_args=())
def cayley_neumann_packed(packed: Tensor, b: int, terms: int) -> Tensor:
    """R = (I + Q)(I + Q + ... + Q^k), Equation (6), k = ``terms`` >= 1, of blocks for which :func:`fits_on_chip`.

    (B, b(b-1)/2) fp16, bf16 or fp32, any strides -> (B, b, b), same dtype. Operands of every product are rounded to it.
    """
    packed = packed.contiguous()
    out = packed.new_empty(len(packed), b, b)
    if out.numel():
        with launch_device(packed):
            _cayley_neumann_kernel[(len(packed),)](
                packed, out, b, terms, **on_chip_tile(b), PRECISION=input_precision(packed.dtype), num_warps=NUM_WARPS,
                num_stages=2,
            )  # fmt: skip
    return out


@skew_unpack.register_fake
def _(packed, b):
    return packed.new_empty(len(packed), b, b)


@skew_pack_difference.register_fake
def _(h):
    return h.new_empty(len(h), h.shape[1] * (h.shape[1] - 1) // 2)


@cayley_neumann_packed.register_fake
def _(packed, b, terms):
    return packed.new_empty(len(packed), b, b)
