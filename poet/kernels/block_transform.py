"""The two-sided transform (Equation (3)) for primitives of blocks, and its VJP: see :mod:`poet.transform`.

Two products with a transpose between them. Permuting rows costs nothing extra, since whole rows are gathered or scattered;
permuting columns would access single elements. So the product with R writes its result transposed: the columns to permute are
rows there, and the product with P reads them in their natural order. The VJP is arranged in the same way. Per layer and
training step these are two launches forward and five backward.

Shape suffixes: ``n`` outputs, ``m`` inputs, ``b`` block size, ``p`` and ``q`` rows and columns of a result, ``s`` what a
sum goes over.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from poet.kernels.tiles import STAGES, input_precision, launch_device

#: Number of programs to aim at: that of an H100's multiprocessors. Not queried: the parts of a split sum, and so its bits, depend on it.
PROGRAMS = 132
#: Fewest terms of a part of a split sum.
SHORTEST_PART = 512
#: Longest edge of a tile of a result.
TILE = 128


@triton.jit
def _pick(index_ptr, position, inside):
    """index[position] as int64, or the position itself where there is no index: offsets may exceed 2^31."""
    if index_ptr is None:
        return position.to(tl.int64)
    else:
        return tl.load(index_ptr + position, mask=inside, other=0)


@triton.jit
def _rotate_kernel(
    g_ptr, x_ptr, y_ptr, gather_ptr, scatter_ptr, blocks, size_p, size_q,
    g_g, g_p, g_k, x_k, x_q, y_p, y_q,
    B: tl.constexpr, PRECISION: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Y[scatter[p], q] = sum_k G[p // B, p % B, k] X[gather[p - p % B + k], q] for p < blocks * B, k < B.

    Beyond the blocks Y[scatter[p], q] = X[gather[p], q]. An index that is None is the identity permutation. Programs with
    adjacent ids have the same q.
    """
    TILES: tl.constexpr = (B + BLOCK_P - 1) // BLOCK_P
    rotated_tiles = blocks * TILES
    tiles = rotated_tiles + tl.cdiv(size_p - blocks * B, BLOCK_P)
    tile = tl.program_id(0) % tiles
    q = (tl.program_id(0) // tiles) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    in_q = q < size_q
    q = q.to(tl.int64)
    if tile < rotated_tiles:
        block = tile // TILES
        row = (tile % TILES) * BLOCK_P + tl.arange(0, BLOCK_P)
        in_p = row < B
        g_tile = g_ptr + block.to(tl.int64) * g_g + row[:, None] * g_p + tl.arange(0, BLOCK_K)[None, :] * g_k
        total = tl.zeros((BLOCK_P, BLOCK_Q), tl.float32)
        for start in range(0, B, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            in_k = k < B
            from_k = _pick(gather_ptr, block * B + k, in_k)
            left = tl.load(g_tile, mask=in_p[:, None] & in_k[None, :], other=0.0)
            right = tl.load(
                x_ptr + from_k[:, None] * x_k + q[None, :] * x_q, mask=in_k[:, None] & in_q[None, :], other=0.0
            )
            total = tl.dot(left, right, total, input_precision=PRECISION)
            g_tile += BLOCK_K * g_k
        to_p = _pick(scatter_ptr, block * B + row, in_p)
        out = total.to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + to_p[:, None] * y_p + q[None, :] * y_q, out, mask=in_p[:, None] & in_q[None, :])
    else:
        p = blocks * B + (tile - rotated_tiles) * BLOCK_P + tl.arange(0, BLOCK_P)
        in_p = p < size_p
        inside = in_p[:, None] & in_q[None, :]
        from_p, to_p = _pick(gather_ptr, p, in_p), _pick(scatter_ptr, p, in_p)
        kept = tl.load(x_ptr + from_p[:, None] * x_k + q[None, :] * x_q, mask=inside)
        tl.store(y_ptr + to_p[:, None] * y_p + q[None, :] * y_q, kept, mask=inside)


@triton.jit
def _correlate_kernel(
    x1_ptr, x2_ptr, z_ptr, gather_ptr, size_s, steps,
    x1_p, x1_s, x2_s, x2_q, z_part, z_g, z_p, z_q,
    B: tl.constexpr, PRECISION: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Z[i, g, p, q] = sum_s X1[gather[g * B + p], s] X2[s, g * B + q] over the i-th part of s.

    A part has ``steps * BLOCK_K`` terms: parts are whole steps, so that only the end of s needs a mask.
    """
    TILES_P: tl.constexpr = (B + BLOCK_P - 1) // BLOCK_P
    TILES_Q: tl.constexpr = (B + BLOCK_Q - 1) // BLOCK_Q
    tile = tl.program_id(0) % (TILES_P * TILES_Q)
    block = tl.program_id(0) // (TILES_P * TILES_Q)
    part = tl.program_id(1)
    p = (tile // TILES_Q) * BLOCK_P + tl.arange(0, BLOCK_P)
    q = (tile % TILES_Q) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    in_p, in_q = p < B, q < B
    first = part * steps * BLOCK_K
    s = (first + tl.arange(0, BLOCK_K)).to(tl.int64)
    x1_tile = x1_ptr + _pick(gather_ptr, block * B + p, in_p)[:, None] * x1_p + s[None, :] * x1_s
    x2_tile = x2_ptr + s[:, None] * x2_s + (block * B + q)[None, :].to(tl.int64) * x2_q
    total = tl.zeros((BLOCK_P, BLOCK_Q), tl.float32)
    for start in range(first, tl.minimum(size_s, first + steps * BLOCK_K), BLOCK_K):
        in_s = start + tl.arange(0, BLOCK_K) < size_s
        left = tl.load(x1_tile, mask=in_p[:, None] & in_s[None, :], other=0.0)
        right = tl.load(x2_tile, mask=in_s[:, None] & in_q[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
        x1_tile += BLOCK_K * x1_s
        x2_tile += BLOCK_K * x2_s
    z_ptr += part.to(tl.int64) * z_part + block.to(tl.int64) * z_g
    tl.store(z_ptr + p[:, None] * z_p + q[None, :] * z_q, total, mask=in_p[:, None] & in_q[None, :])


def tile_shape(b: int, element_size: int, *, square: bool) -> dict[str, int]:
    """Tile of a result, and the number of terms of one step of its sum: 128 bytes of a row.

    A tile does not extend beyond a block: in p, and in q too where the result is ``square``.

    Args:
        b: block size.
        element_size: bytes of an element of the operands, 2 or 4.
        square: the result is (b, b), as the gradient with respect to a block is.

    Returns:
        ``BLOCK_P``, ``BLOCK_Q`` and ``BLOCK_K``, powers of two.
    """
    longest = TILE if element_size == 2 else TILE // 2
    edge = min(longest, max(16, triton.next_power_of_2(b)))
    return {"BLOCK_P": edge, "BLOCK_Q": edge if square else longest, "BLOCK_K": 128 // element_size}


def warps(tile: dict[str, int]) -> int:
    """Warps of a program: four for each 64 x 128 elements of its result, so that the accumulator fits into registers."""
    return 8 if tile["BLOCK_P"] * tile["BLOCK_Q"] > 64 * 128 else 4


def _rotate(g: Tensor, x: Tensor, y: Tensor, *, gather: Tensor | None = None, scatter: Tensor | None = None) -> Tensor:
    """y[scatter] = Diag(G_1, ..., G_k, I) x[gather], written to y and returned.

    g is (k, b, b), x and y are (m, s) with k * b <= m, all of any strides. Indices are (m,) int64, or None for the identity.
    """
    (blocks, b, _), (size_p, size_q) = g.shape, x.shape
    tile = tile_shape(b, x.element_size(), square=False)
    tiles_p = blocks * triton.cdiv(b, tile["BLOCK_P"]) + triton.cdiv(size_p - blocks * b, tile["BLOCK_P"])
    with launch_device(x):
        _rotate_kernel[(tiles_p * triton.cdiv(size_q, tile["BLOCK_Q"]),)](
            g, x, y, gather, scatter, blocks, size_p, size_q, *g.stride(), *x.stride(), *y.stride(),
            B=b, PRECISION=input_precision(x.dtype), **tile, num_warps=warps(tile), num_stages=STAGES,
        )  # fmt: skip
    return y


def sum_parts(blocks: int, b: int, size_s: int) -> int:
    """Number of parts that a sum of ``size_s`` terms is split into, for a result of ``blocks`` blocks of size b.

    It depends on shapes alone, so that every device sums in the same order.
    """
    tiles = blocks * triton.cdiv(b, TILE) ** 2
    return max(1, min(PROGRAMS // tiles, size_s // SHORTEST_PART))


def _correlate(x1: Tensor, x2: Tensor, blocks: int, b: int, gather: Tensor) -> Tensor:
    """(k, b, b) fp32: block g is x1[gather][rows of g] @ x2[:, columns of g], for x1 (m, s) and x2 (s, m), any strides."""
    size_s, parts = x1.shape[1], sum_parts(blocks, b, x1.shape[1])
    tile = tile_shape(b, x1.element_size(), square=True)
    z = x1.new_empty(parts, blocks, b, b, dtype=torch.float32)
    tiles = triton.cdiv(b, tile["BLOCK_P"]) * triton.cdiv(b, tile["BLOCK_Q"])
    with launch_device(x1):
        _correlate_kernel[(blocks * tiles, parts)](
            x1, x2, z, gather, size_s, triton.cdiv(triton.cdiv(size_s, tile["BLOCK_K"]), parts),
            *x1.stride(), *x2.stride(), *z.stride(),
            B=b, PRECISION=input_precision(x1.dtype), **tile, num_warps=warps(tile), num_stages=STAGES,
        )  # fmt: skip
    return z[0] if parts == 1 else z.sum(0)


def _half(base: Tensor, g_r: Tensor | None, permutation_in: Tensor) -> Tensor:
    """(m, n): the base weight, transposed, with R applied and the inputs permuted to coordinates."""
    return base.mT if g_r is None else _rotate(g_r, base.mT, base.new_empty(base.mT.shape), scatter=permutation_in)


def _finished(half: Tensor, g_p: Tensor | None, permutation_out: Tensor) -> Tensor:
    """W_RP (n, m), from the result of :func:`_half`."""
    if g_p is None:
        return half.mT.clone(memory_format=torch.contiguous_format)
    return _rotate(g_p.mT, half.mT, half.new_empty(half.mT.shape), scatter=permutation_out)


@torch.library.custom_op("poet::block_transform", mutates_args=())
def block_transform(
    base: Tensor, g_r: Tensor | None, g_p: Tensor | None, permutation_in: Tensor, permutation_out: Tensor
) -> Tensor:
    """:func:`poet.transform.transform_reference` in fp32, bf16 or fp16.

    Args:
        base: (n, m), the base weight in the permuted basis.
        g_r, g_p: (k, b, b) of the dtype of ``base``, or None for an identity side.
        permutation_in, permutation_out: (m,) and (n,) int64.

    Returns:
        (n, m), the dtype of ``base``. Products accumulate in fp32; the weight with R alone applied is rounded to that dtype.
    """
    return _finished(_half(base, g_r, permutation_in), g_p, permutation_out)


@torch.library.custom_op("poet::block_transform_vjp", mutates_args=())
def block_transform_vjp(
    base: Tensor, g_r: Tensor | None, g_p: Tensor | None, permutation_in: Tensor, permutation_out: Tensor,
    grad: Tensor, wanted_r: bool, wanted_p: bool, build: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """:func:`poet.transform.transform_vjp_reference` in fp32, bf16 or fp16.

    Args:
        base, g_r, g_p, permutation_in, permutation_out: the arguments of :func:`block_transform`.
        grad: (n, m), gradient of the loss with respect to its result; cast to the dtype of ``base``.
        wanted_r, wanted_p, build: which of the three results are needed.

    Returns:
        The gradients with respect to g_r and g_p, (k, b, b) fp32, and W_RP, (n, m) of the dtype of ``base``; what is not needed
        is an empty tensor.
    """
    by_r = by_p = weight = None
    grad = grad.to(base.dtype)
    if wanted_r:
        undone = grad.mT
        if g_p is not None:
            undone = base.new_empty(base.mT.shape)
            _rotate(g_p, grad, undone.mT, gather=permutation_out)
        by_r = _correlate(undone, base, *g_r.shape[:2], permutation_in)
        del undone  # freed before another tensor of the weight's size is allocated
    if wanted_p or build:
        half = _half(base, g_r, permutation_in)
        if wanted_p:
            by_p = _correlate(grad, half, *g_p.shape[:2], permutation_out).mT.contiguous()
        if build:
            weight = _finished(half, g_p, permutation_out)
    return tuple(base.new_empty(0) if result is None else result for result in (by_r, by_p, weight))


@block_transform.register_fake
def _(base, g_r, g_p, permutation_in, permutation_out):
    return base.new_empty(base.shape)


@block_transform_vjp.register_fake
def _(base, g_r, g_p, permutation_in, permutation_out, grad, wanted_r, wanted_p, build):
    pairs = ((g_r, wanted_r), (g_p, wanted_p))
    gradients = (base.new_empty(g.shape, dtype=torch.float32) if wanted else base.new_empty(0) for g, wanted in pairs)
    return *gradients, base.new_empty(base.shape) if build else base.new_empty(0)
