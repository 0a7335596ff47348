"""Batched products of square matrices with an epilogue, and the sum of a matrix and its transpose.

What :mod:`poet.kernels.gpu.cayley_neumann` is composed of where a matrix is too large for one multiprocessor. Each
program computes one tile of a product, accumulates it in fp32, and adds multiples of other matrices' tiles before it
rounds. The inner loop only copies tiles to the tensor cores: a sum that a later product needs is a second output of the
product before. Sizes need not be multiples of a tile (edges are masked), but rows of a multiple of 16 bytes are copied
fastest.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from poet.kernels.gpu.tiles import input_precision, launch_device, upper_tile


@triton.jit
def _tile_product(
    a_ptr, b_ptr, first_row, first_column, size,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of A B for row-major (size, size) matrices, fp32."""
    rows = first_row + tl.arange(0, BLOCK_M)[:, None]
    columns = first_column + tl.arange(0, BLOCK_N)[None, :]
    along_a = tl.arange(0, BLOCK_K)[None, :]
    along_b = tl.arange(0, BLOCK_K)[:, None]
    a_ptrs = a_ptr + (rows * size + along_a)
    b_ptrs = b_ptr + (along_b * size + columns)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for done in range(0, size, BLOCK_K):
        left = tl.load(a_ptrs, mask=(rows < size) & (along_a < size - done), other=0.0)
        right = tl.load(b_ptrs, mask=(along_b < size - done) & (columns < size), other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * size
    return total


@triton.jit
def _add_tile(total, ptr, offsets, inside, factor):
    """``total + factor * tile``; nothing is read where the factor is 0. A branch, and not a mask: the compiler would
    bring two masked tiles into registers at once, and spill."""
    if factor != 0.0:
        total += factor * tl.load(ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    return total


@triton.jit
def _product_kernel(
    a_ptr, b_ptr, c_ptr, d_ptr, out_ptr, second_ptr, size, sign, of_c, of_d, of_identity, second_of_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """out = sign A B + of_c C + of_d D + of_identity I, and second = out + second_of_d D unless that factor is 0."""
    across = tl.cdiv(size, BLOCK_N)
    tiles = tl.cdiv(size, BLOCK_M) * across
    # Programs that run at the same time share a matrix, then its rows: 16 MB of operands at b = 2,048 stay in L2.
    matrix = (tl.program_id(0) // tiles).to(tl.int64) * size * size
    tile = tl.program_id(0) % tiles
    first_row = tile // across * BLOCK_M
    first_column = tile % across * BLOCK_N
    total = sign * _tile_product(
        a_ptr + matrix, b_ptr + matrix, first_row, first_column, size, BLOCK_M, BLOCK_N, BLOCK_K, PRECISION
    )
    rows = first_row + tl.arange(0, BLOCK_M)[:, None]
    columns = first_column + tl.arange(0, BLOCK_N)[None, :]
    offsets = rows * size + columns
    inside = (rows < size) & (columns < size)
    total = _add_tile(total, c_ptr + matrix, offsets, inside, of_c)
    total = _add_tile(total, d_ptr + matrix, offsets, inside, of_d)
    total += tl.where(rows == columns, of_identity, 0.0)
    tl.store(out_ptr + matrix + offsets, total, mask=inside)
    if second_of_d != 0.0:
        total = _add_tile(total, d_ptr + matrix, offsets, inside, second_of_d)
        tl.store(second_ptr + matrix + offsets, total, mask=inside)


@triton.jit
def _symmetric_kernel(
    a_ptr, b_ptr, c_ptr, d_ptr, out_ptr, second_ptr, size, of_c, second_of_d,
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """out = A B + of_c C, which is symmetric, and second = out + second_of_d D (any D) unless that factor is 0."""
    edge = tl.cdiv(size, BLOCK)
    tiles = edge * (edge + 1) // 2
    matrix = (tl.program_id(0) // tiles).to(tl.int64) * size * size
    tile_i, tile_j = upper_tile(tl.program_id(0) % tiles, edge)
    total = _tile_product(
        a_ptr + matrix, b_ptr + matrix, tile_i * BLOCK, tile_j * BLOCK, size, BLOCK, BLOCK, BLOCK_K, PRECISION
    )
    rows = tile_i * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tile_j * BLOCK + tl.arange(0, BLOCK)[None, :]
    offsets = rows * size + columns
    inside = (rows < size) & (columns < size)
    total = _add_tile(total, c_ptr + matrix, offsets, inside, of_c)
    tl.store(out_ptr + matrix + offsets, total, mask=inside)
    if second_of_d != 0.0:
        second = _add_tile(total, d_ptr + matrix, offsets, inside, second_of_d)
        tl.store(second_ptr + matrix + offsets, second, mask=inside)
    if tile_i != tile_j:
        rows = tile_j * BLOCK + tl.arange(0, BLOCK)[:, None]
        columns = tile_i * BLOCK + tl.arange(0, BLOCK)[None, :]
        offsets = rows * size + columns
        inside = (rows < size) & (columns < size)
        total = tl.trans(total)
        tl.store(out_ptr + matrix + offsets, total, mask=inside)
        if second_of_d != 0.0:
            second = _add_tile(total, d_ptr + matrix, offsets, inside, second_of_d)
            tl.store(second_ptr + matrix + offsets, second, mask=inside)


@triton.jit
def _with_transpose_kernel(a_ptr, out_ptr, size, factor, sign, TILE: tl.constexpr):
    """out = factor (A + sign A^T), sign +1 or -1; two mirrored tiles a program, each number read once."""
    edge = tl.cdiv(size, TILE)
    tiles = edge * (edge + 1) // 2
    matrix = (tl.program_id(0) // tiles).to(tl.int64) * size * size
    tile_i, tile_j = upper_tile(tl.program_id(0) % tiles, edge)
    rows = tile_i * TILE + tl.arange(0, TILE)[:, None]
    columns = tile_j * TILE + tl.arange(0, TILE)[None, :]
    offsets = rows * size + columns
    inside = (rows < size) & (columns < size)
    tile = tl.load(a_ptr + matrix + offsets, mask=inside, other=0.0).to(tl.float32)
    if tile_i == tile_j:
        tl.store(out_ptr + matrix + offsets, factor * (tile + sign * tl.trans(tile)), mask=inside)
    else:
        rows = tile_j * TILE + tl.arange(0, TILE)[:, None]
        columns = tile_i * TILE + tl.arange(0, TILE)[None, :]
        mirrored_offsets = rows * size + columns
        mirrored_inside = (rows < size) & (columns < size)
        mirrored = tl.load(a_ptr + matrix + mirrored_offsets, mask=mirrored_inside, other=0.0).to(tl.float32)
        total = factor * (tile + sign * tl.trans(mirrored))
        tl.store(out_ptr + matrix + offsets, total, mask=inside)
        tl.store(out_ptr + matrix + mirrored_offsets, sign * tl.trans(total), mask=mirrored_inside)


def _product_config(block_m: int, block_n: int, block_k: int, num_warps: int, num_stages: int) -> triton.Config:
    blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
    return triton.Config(blocks, num_warps=num_warps, num_stages=num_stages)


def _symmetric_config(block: int, block_k: int, num_warps: int, num_stages: int) -> triton.Config:
    return triton.Config({"BLOCK": block, "BLOCK_K": block_k}, num_warps=num_warps, num_stages=num_stages)


#: By bytes per element; the first is the default. One BLOCK_K per element size: each number of a result is the same sum
#: in the same order whichever configuration the autotuner picks, so that two ranks may pick differently.
PRODUCT_CONFIGS = {
    2: (_product_config(128, 128, 64, 8, 3), _product_config(64, 128, 64, 4, 3)),
    4: (_product_config(64, 64, 32, 4, 3),),
}
SYMMETRIC_CONFIGS = {
    2: (_symmetric_config(128, 64, 8, 3), _symmetric_config(64, 64, 4, 3)),
    4: (_symmetric_config(64, 32, 4, 3),),
}
#: Edge of a tile of the kernel that adds a transpose.
TILE = 64


def _tuned(kernel, configs: dict[int, tuple[triton.Config, ...]]) -> dict:
    """An autotuner per element size, keyed by matrix size and (Triton adds them) dtypes.

    It runs a kernel many times, which is why none here reads what it writes. The interpreter has nothing to time.
    """
    interpreted = triton.knobs.runtime.interpret
    return {
        size: triton.autotune(list(choices[:1] if interpreted else choices), key=["size"])(kernel)
        for size, choices in configs.items()
    }


_tuned_product = _tuned(_product_kernel, PRODUCT_CONFIGS)
_tuned_symmetric = _tuned(_symmetric_kernel, SYMMETRIC_CONFIGS)


def _upper_tiles(size: int, block: int) -> int:
    edge = triton.cdiv(size, block)
    return edge * (edge + 1) // 2


def product(a, b, *, out=None, sign=1.0, c=None, of_c=0.0, d=None, of_d=0.0, of_identity=0.0, second_of_d=0.0):
    """sign A B + of_c C + of_d D + of_identity I as a tensor of dtype ``out`` (A's if None).

    Where ``second_of_d`` is not 0 the result is a pair: that, and that + second_of_d D in A's dtype.
    """
    batch, size, _ = a.shape
    result = torch.empty(a.shape, dtype=out or a.dtype, device=a.device)
    second = torch.empty_like(a) if second_of_d else result
    with launch_device(a):
        _tuned_product[a.element_size()][
            lambda meta: (batch * triton.cdiv(size, meta["BLOCK_M"]) * triton.cdiv(size, meta["BLOCK_N"]),)
        ](
            a, b, a if c is None else c, a if d is None else d, result, second, size,
            sign, of_c, of_d, of_identity, second_of_d, PRECISION=input_precision(a.dtype),
        )  # fmt: skip
    return (result, second) if second_of_d else result


def symmetric_product(a, b, *, c=None, of_c=0.0, d=None, second_of_d=0.0):
    """A B + of_c C at half the tiles, for C symmetric, A and B that commute and are both symmetric or both skew.

    With ``second_of_d`` the result is a pair, as :func:`product` returns it.
    """
    batch, size, _ = a.shape
    result = torch.empty_like(a)
    second = torch.empty_like(a) if second_of_d else result
    with launch_device(a):
        _tuned_symmetric[a.element_size()][lambda meta: (batch * _upper_tiles(size, meta["BLOCK"]),)](
            a, b, a if c is None else c, a if d is None else d, result, second, size, of_c, second_of_d,
            PRECISION=input_precision(a.dtype),
        )  # fmt: skip
    return (result, second) if second_of_d else result


def with_transpose(a: Tensor, factor: float, sign: float, dtype: torch.dtype) -> Tensor:
    """factor (A + sign A^T) as ``dtype``, exactly symmetric (sign +1) or skew (-1)."""
    batch, size, _ = a.shape
    result = torch.empty(a.shape, dtype=dtype, device=a.device)
    with launch_device(a):
        _with_transpose_kernel[(batch * _upper_tiles(size, TILE),)](
            a, result, size, factor, sign, TILE=TILE, num_warps=4
        )
    return result
