"""Products with blocks: the two Triton kernels behind :mod:`poet.kernels.gpu.block_transform`, and their launches.

- :func:`rotate`: ``Y[p, q] = sum_k F[p, k] X[q, k]``, block by block along p, coordinates beyond the blocks copied;
- :func:`correlate`: ``Z[block, p, q] = sum_s X1[block's p, s] X2[s, block's q]``, the gradient of every block at once.

Accumulation is in fp32. No atomics: a sum over s is split into parts, each in its own place.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from poet.kernels.gpu.tiles import input_precision, launch_device

#: Programs to aim at: one for each multiprocessor of an H100. Not read off the device: the parts of a sum depend on it.
PROGRAMS = 132
#: Shortest part of a split sum: a shorter one costs more to add up than it gains.
SHORTEST_PART = 512

# BLOCK_K is no part of a configuration: it depends on the dtype alone, so that every configuration adds up the products
# of one number in the same order, and what the autotuner picks does not change a result. WHOLE goes over a block in one
# step, in the same order for 16-bit numbers. Not so for fp32, where one step is three passes of TF32 products.


def block_k(dtype: torch.dtype) -> int:
    """Depth of one step of a product: 128 bytes of a row, the widest swizzle of shared memory."""
    return 128 // dtype.itemsize


def _config(p: int, q: int, warps: int, stages: int, **constants: bool) -> triton.Config:
    return triton.Config({"BLOCK_P": p, "BLOCK_Q": q, **constants}, num_warps=warps, num_stages=stages)


def rotate_configs(stages: int) -> dict[int, list[triton.Config]]:
    """By bytes of a number, better ones first. What a device has no shared memory for, the autotuner leaves out."""
    whole = [_config(*sizes, 1, WHOLE=True) for sizes in ((64, 128, 4), (128, 64, 4), (256, 64, 8))]
    stepwise = [_config(*sizes, stages, WHOLE=False) for sizes in ((128, 256, 8), (128, 128, 8), (64, 128, 4))]
    return {2: whole + stepwise, 4: stepwise[1:]}


def correlate_configs(stages: int) -> dict[int, list[triton.Config]]:
    """By bytes of a number, better ones first."""
    configs = [_config(*sizes, stages) for sizes in ((128, 256, 8), (128, 128, 8), (64, 64, 4))]
    return {2: configs, 4: configs[1:]}


def candidates(configs: list[triton.Config], b: int, along: tuple[str, ...]) -> list[triton.Config]:
    """The one or two configurations that are tried for blocks of size b, the default first.

    Tiles are no larger than a block needs on the sides ``along`` which a block lies, and WHOLE is for just one size.
    """
    edge = max(64, triton.next_power_of_2(b))
    fitting = [
        config
        for config in configs
        if all(config.kwargs[side] <= edge for side in along)
        and (config.kwargs["BLOCK_P"] == edge or not config.kwargs.get("WHOLE"))
    ]
    return fitting[:2]


@triton.jit
def _pick(index_ptr, position, inside):
    """index[position] as int64, or the position itself where there is no index: offsets may pass 2^31."""
    if index_ptr is None:
        return position.to(tl.int64)
    else:
        return tl.load(index_ptr + position, mask=inside, other=0)


@triton.jit
def _rotate_kernel(
    x_ptr, f_ptr, y_ptr, q_index_ptr, k_index_ptr, p_index_ptr, blocks, size_p, size_q,
    x_q, x_k, f_g, f_p, f_k, y_p, y_q,
    B: tl.constexpr, PRECISION: tl.constexpr, WHOLE: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Y[p_index[p], q] = sum_k F[p // B, p % B, k] X[q_index[q], k_index[p - p % B + k]] for p < blocks * B.

    k < B; beyond the blocks Y[p_index[p], q] = X[q_index[q], k_index[p]]. An index that is None leaves its side
    as it is. Neighbouring programs have the same q, so that together they read whole rows of X.

    WHOLE: BLOCK_P covers a block, which stays in shared memory while a program goes over its share of q, and X is read
    once. That halves what passes between L2 and the multiprocessors, which is what limits small blocks: tiles of
    128 x 256 of a block of 256 load and store 15.5 KB per MFLOP, with 5.5 TB/s no more than 355 TFLOP/s; WHOLE 7.8 KB.
    """
    TILES: tl.constexpr = (B + BLOCK_P - 1) // BLOCK_P
    rotated_tiles = blocks * TILES
    tiles = rotated_tiles + tl.cdiv(size_p - blocks * B, BLOCK_P)
    tile = tl.program_id(0) % tiles
    share = tl.cdiv(tl.cdiv(size_q, BLOCK_Q), tl.num_programs(0) // tiles) * BLOCK_Q
    first_q = (tl.program_id(0) // tiles) * share
    last_q = tl.minimum(first_q + share, size_q)

    if tile < rotated_tiles:
        block = tile // TILES
        row = (tile % TILES) * BLOCK_P + tl.arange(0, BLOCK_P)
        in_p = row < B
        y_rows = y_ptr + _pick(p_index_ptr, block * B + row, in_p)[:, None] * y_p
        f_ptr += block.to(tl.int64) * f_g
        if WHOLE:
            k = tl.arange(0, BLOCK_P)
            in_k = k < B
            left = tl.load(f_ptr + row[:, None] * f_p + k[None, :] * f_k, mask=in_p[:, None] & in_k[None, :], other=0.0)
            x_columns = x_ptr + _pick(k_index_ptr, block * B + k, in_k)[:, None] * x_k
            # During the product with one tile of X the next is loaded into registers, and where the one after it comes
            # from: shared memory has no room for the buffers of Triton's own pipeline beside the block.
            q = first_q + tl.arange(0, BLOCK_Q)
            in_q = q < size_q
            from_q = _pick(q_index_ptr, q, in_q)
            right = tl.load(x_columns + from_q[None, :] * x_q, mask=in_k[:, None] & in_q[None, :], other=0.0)
            from_q = _pick(q_index_ptr, q + BLOCK_Q, q + BLOCK_Q < size_q)
            for start_q in tl.range(first_q, last_q, BLOCK_Q, num_stages=1):
                q = start_q + tl.arange(0, BLOCK_Q)
                if q_index_ptr is None:
                    from_q = (q + BLOCK_Q).to(tl.int64)
                in_next = (q + BLOCK_Q < size_q) & (start_q + BLOCK_Q < last_q)
                following = tl.load(x_columns + from_q[None, :] * x_q, mask=in_k[:, None] & in_next[None, :], other=0.0)
                from_q = _pick(q_index_ptr, q + 2 * BLOCK_Q, q + 2 * BLOCK_Q < size_q)
                out = tl.dot(left, right, input_precision=PRECISION).to(y_ptr.dtype.element_ty)
                tl.store(y_rows + q[None, :].to(tl.int64) * y_q, out, mask=in_p[:, None] & (q < size_q)[None, :])
                right = following
        else:
            q = first_q + tl.arange(0, BLOCK_Q)  # one tile a program
            in_q = q < size_q
            x_rows = x_ptr + _pick(q_index_ptr, q, in_q)[None, :] * x_q
            f_tile = f_ptr + row[:, None] * f_p + tl.arange(0, BLOCK_K)[None, :] * f_k
            total = tl.zeros((BLOCK_P, BLOCK_Q), tl.float32)
            for start in range(0, B, BLOCK_K):
                k = start + tl.arange(0, BLOCK_K)
                in_k = k < B
                from_k = _pick(k_index_ptr, block * B + k, in_k)
                left = tl.load(f_tile, mask=in_p[:, None] & in_k[None, :], other=0.0)
                right = tl.load(x_rows + from_k[:, None] * x_k, mask=in_k[:, None] & in_q[None, :], other=0.0)
                total = tl.dot(left, right, total, input_precision=PRECISION)
                f_tile += BLOCK_K * f_k
            out = total.to(y_ptr.dtype.element_ty)
            tl.store(y_rows + q[None, :].to(tl.int64) * y_q, out, mask=in_p[:, None] & in_q[None, :])
    else:
        p = blocks * B + (tile - rotated_tiles) * BLOCK_P + tl.arange(0, BLOCK_P)
        in_p = p < size_p
        x_columns = x_ptr + _pick(k_index_ptr, p, in_p)[:, None] * x_k
        y_rows = y_ptr + _pick(p_index_ptr, p, in_p)[:, None] * y_p
        for start_q in range(first_q, last_q, BLOCK_Q):
            q = start_q + tl.arange(0, BLOCK_Q)
            in_q = q < size_q
            inside = in_p[:, None] & in_q[None, :]
            kept = tl.load(x_columns + _pick(q_index_ptr, q, in_q)[None, :] * x_q, mask=inside)
            tl.store(y_rows + q[None, :].to(tl.int64) * y_q, kept, mask=inside)


@triton.jit
def _correlate_kernel(
    x1_ptr, x2_ptr, z_ptr, p_index_ptr, size_s, steps,
    x1_p, x1_s, x2_s, x2_q, z_part, z_g, z_p, z_q,
    B: tl.constexpr, ACCUMULATE: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Z[i, g, p, q] (+)= sum_s X1[p_index[g * B + p], s] X2[s, g * B + q] over the i-th part of s.

    A part has ``steps * BLOCK_K`` numbers: parts end where steps do, so that only the end of s needs a mask.
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
    x1_tile = x1_ptr + _pick(p_index_ptr, block * B + p, in_p)[:, None] * x1_p + s[None, :] * x1_s
    x2_tile = x2_ptr + s[:, None] * x2_s + (block * B + q)[None, :].to(tl.int64) * x2_q
    z_ptr += part.to(tl.int64) * z_part + block.to(tl.int64) * z_g
    z_tile = z_ptr + p[:, None] * z_p + q[None, :] * z_q
    inside = in_p[:, None] & in_q[None, :]
    if ACCUMULATE:  # here and not after the sum: two tiles of it do not fit into the registers
        total = tl.load(z_tile, mask=inside, other=0.0)
    else:
        total = tl.zeros((BLOCK_P, BLOCK_Q), tl.float32)
    for start in range(first, tl.minimum(size_s, first + steps * BLOCK_K), BLOCK_K):
        in_s = start + tl.arange(0, BLOCK_K) < size_s
        left = tl.load(x1_tile, mask=in_p[:, None] & in_s[None, :], other=0.0)
        right = tl.load(x2_tile, mask=in_s[:, None] & in_q[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
        x1_tile += BLOCK_K * x1_s
        x2_tile += BLOCK_K * x2_s
    tl.store(z_tile, total, mask=inside)


def _tuned(kernel, configs: dict[int, list[triton.Config]], along: tuple[str, ...], key: list[str]):
    """The autotuner around a kernel. The first call of a kind, which is timed, never accumulates."""

    def prune(_, arguments, **constants):
        return candidates(configs[arguments[kernel.arg_names[0]].element_size()], constants["B"], along)

    # Triton's interpreter has no times to compare: the default.
    do_bench = (lambda call, quantiles: [0.0] * len(quantiles)) if triton.knobs.runtime.interpret else None
    return triton.autotune(configs[2], key, prune_configs_by={"early_config_prune": prune}, do_bench=do_bench)(kernel)


STAGES = 2 if torch.version.hip else 3  # AMD has 64 KB of shared memory
ROTATED, CORRELATED = ("BLOCK_P",), ("BLOCK_P", "BLOCK_Q")
_tuned_rotate = _tuned(_rotate_kernel, rotate_configs(STAGES), ROTATED, ["B", "x_k"])
_tuned_correlate = _tuned(_correlate_kernel, correlate_configs(STAGES), CORRELATED, ["B"])


@functools.lru_cache(maxsize=1024)
def _shares(tiles_p: int, tiles_q: int, block_p: int, block_q: int) -> int:
    """Into how many programs to cut the q of one block that stays in shared memory.

    Of all, the number that takes the least time: rounds of programs, times a program's tiles and the load of its block,
    which takes as long as the load of block_p numbers of q. A multiprocessor holds one block of 256, or two of 128.
    """
    slots = PROGRAMS * 256 // block_p
    load = block_p / block_q
    return min(range(1, tiles_q + 1), key=lambda n: triton.cdiv(tiles_p * n, slots) * (triton.cdiv(tiles_q, n) + load))


def rotate(
    x: Tensor,
    f: Tensor | None,
    y: Tensor,
    *,
    q_index: Tensor | None = None,
    k_index: Tensor | None = None,
    p_index: Tensor | None = None,
) -> None:
    """y[p_index[p], q] = sum_k f[block, row, k] x[q_index[q], k_index[block's k]], p = row of block.

    Beyond the blocks of f, y[p_index[p], q] = x[q_index[q], k_index[p]].

    Args:
        x: (q, k), any strides, as those of f and y.
        f: (blocks, b, b), blocks * b <= p; None: no blocks.
        y: (p, q), written.
        q_index, k_index, p_index: (q,), (p,), (p,) int64, or None. One of k is of p: a block has the same range.
    """
    size_p = x.shape[1] if k_index is None else len(k_index)
    size_q = x.shape[0] if q_index is None else len(q_index)
    blocks = 0 if f is None else len(f)
    b = 64 if f is None else f.shape[1]
    f = x[None] if f is None else f  # no blocks: nothing reads it

    def grid(meta):
        tiles_p = blocks * triton.cdiv(b, meta["BLOCK_P"]) + triton.cdiv(size_p - blocks * b, meta["BLOCK_P"])
        tiles_q = triton.cdiv(size_q, meta["BLOCK_Q"])
        if meta["WHOLE"]:
            tiles_q = _shares(tiles_p, tiles_q, meta["BLOCK_P"], meta["BLOCK_Q"])
        return (tiles_p * tiles_q,)

    with launch_device(x):
        _tuned_rotate[grid](
            x, f, y, q_index, k_index, p_index, blocks, size_p, size_q,
            *x.stride(), *f.stride(), *y.stride(),
            B=b, PRECISION=input_precision(x.dtype), BLOCK_K=block_k(x.dtype),
        )  # fmt: skip


def correlate(x1: Tensor, x2: Tensor, z: Tensor, *, p_index: Tensor | None, accumulate: bool) -> None:
    """z[:, block, p, q] (+)= parts of sum_s x1[p_index[block's p], s] x2[s, block's q].

    Args:
        x1, x2: (p, s) and (s, q), any strides.
        z: (parts, blocks, b, b) fp32, written, or added to where ``accumulate`` says so.
        p_index: (p,) int64, or None.
    """
    parts, blocks, b, _ = z.shape
    size_s, depth = x1.shape[1], block_k(x1.dtype)

    def grid(meta):
        return blocks * triton.cdiv(b, meta["BLOCK_P"]) * triton.cdiv(b, meta["BLOCK_Q"]), parts

    with launch_device(x1):
        _tuned_correlate[grid](
            x1, x2, z, p_index, size_s, triton.cdiv(triton.cdiv(size_s, depth), parts),
            *x1.stride(), *x2.stride(), *z.stride(),
            B=b, ACCUMULATE=accumulate, PRECISION=input_precision(x1.dtype), BLOCK_K=depth,
        )  # fmt: skip


def sums_like(gradient: Tensor, size_s: int) -> Tensor:
    """(parts, blocks, b, b) for :func:`correlate` to fill, like ``gradient`` (blocks, b, b).

    Into how many parts a sum over s is cut follows from the shapes alone, so that a result is the same on any device.
    """
    blocks, b, _ = gradient.shape
    tiles = blocks * triton.cdiv(b, 128) * triton.cdiv(b, 256)  # of the default configuration
    parts = max(1, min(PROGRAMS // tiles, size_s // SHORTEST_PART))
    return gradient.new_empty(parts, *gradient.shape)
