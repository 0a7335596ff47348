"""The permuted two-sided block transform (Equation (3)) on a GPU, and its pull-back to the blocks.

The operations behind :mod:`poet.kernels.block_transform`, which says what the arguments and shape suffixes mean.

Why two products with a transposed strip between them, and not one fused kernel. A permutation of rows is free (whole
rows move), one of columns is not: 16 bits at random places of a row cost a 32-byte sector each, in either direction, so
that scattering or gathering a 4096 x 14336 weight moves 16 times its size between L2 and the multiprocessors, 1.9 GB
or about 340 us on an H200; a pass that permutes each row in shared memory costs another read and write of the weight,
about 55 us. If the product with the blocks of R writes its result transposed, the columns to permute are rows when the
product with the blocks of P reads them, and both permutations are free. The strip in between is bounded (``STRIP``),
so that beside the result nothing as large as a large weight is allocated. The pull-back is arranged in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
from torch import Tensor

from poet.kernels.gpu.block_products import correlate, rotate, sums_like

#: Numbers in a strip, unless one block of rows has more: 64 MB of half precision. Smaller strips stay in L2 (50 MB on
#: an H100), larger ones load the blocks less often and leave fewer multiprocessors idle at the end of a launch.
STRIP = 2**25


def _strips(weight: Tensor, g_p: Tensor | None) -> Iterator[tuple[int, int, slice | None]]:
    """(first row, row after the last, P's blocks in them): strips of equal size, whole blocks while there are any."""
    n, m = weight.shape
    k, b = (0, 1) if g_p is None else g_p.shape[:2]
    rows = triton.cdiv(n, triton.cdiv(n * m, STRIP))
    start = 0
    while start < n:
        stop = start + rows
        if start < k * b:
            stop = min(k * b, start + triton.cdiv(rows, b) * b) if stop < k * b else stop
        stop = min(stop, n)
        first, last = start // b, min(stop // b, k)
        yield start, stop, slice(first, last) if first < last else None
        start = stop


def _strip(weight: Tensor, rows: int) -> Tensor:
    """(m, rows), to be filled: some rows of the weight, transposed, at addresses that 16 bytes divide."""
    return weight.new_empty(weight.shape[1], triton.cdiv(rows, 16) * 16)[:, :rows]


def _rows(x: Tensor, order: Tensor | None, start: int, stop: int) -> tuple[Tensor, Tensor | None]:
    """The rows of x (n, m) that rows ``start`` to ``stop`` of the permuted basis are, as a view or with an index."""
    return (x[start:stop], None) if order is None else (x, order[start:stop])


def _total(sums: Tensor) -> Tensor:
    """Parts added up, in a fixed order."""
    return sums[0] if len(sums) == 1 else sums.sum(0)


def block_transform(
    weight: Tensor, g_r: Tensor | None, g_p: Tensor | None, order_out: Tensor | None, inverse_in: Tensor | None
) -> Tensor:
    """:func:`poet.kernels.block_transform.block_transform_reference` in fp32, bf16 or fp16.

    Products are accumulated in fp32; the weight with R alone applied is rounded to the weight's dtype on the way, so
    that the result has two roundings where the reference has one.
    """
    result = torch.empty_like(weight, memory_format=torch.contiguous_format)
    for start, stop, blocks in _strips(weight, g_p):
        base = weight[start:stop]
        half = base.mT
        if g_r is not None or inverse_in is not None:
            half = _strip(weight, stop - start)
            rotate(base, g_r, half)
        target, rows = _rows(result, order_out, start, stop)
        rotate(half, None if blocks is None else g_p[blocks].mT, target, q_index=inverse_in, p_index=rows)
    return result


def _pull_back(
    weight: Tensor,
    g_r: Tensor | None,
    g_p: Tensor | None,
    grad: Tensor,
    order_out: Tensor | None,
    order_in: Tensor | None,
    *,
    build: bool,
) -> tuple[Tensor | None, Tensor | None]:
    assert not build or grad.dtype == weight.dtype
    grad_r, grad_p = (None if g is None else torch.empty_like(g, dtype=torch.float32) for g in (g_r, g_p))
    sums_r = None
    for start, stop, blocks in _strips(weight, g_p):
        grad_rows, picked = _rows(grad, order_out, start, stop)
        base, own = weight[start:stop], None if blocks is None else g_p[blocks]
        if g_r is not None:
            undone = _strip(weight, stop - start)
            rotate(grad_rows.mT, own, undone.mT, k_index=picked)
            sums_r = sums_like(grad_r, stop - start) if sums_r is None else sums_r
            correlate(undone, base, sums_r, p_index=order_in, accumulate=start > 0)
            del undone  # before another strip is allocated
        covered = 0 if own is None else own.shape[0] * own.shape[1]
        if not (build or covered):
            continue
        base = base if build else base[:covered]
        half = base.mT
        if g_r is not None or order_in is not None:
            half = _strip(weight, len(base))
            # The columns to their natural places: the gradient's stay where they are.
            rotate(base, g_r, half, p_index=order_in)
        if covered:
            sums = sums_like(grad_p[blocks], weight.shape[1])
            correlate(grad_rows, half[:, :covered], sums.mT, p_index=picked, accumulate=False)
            grad_p[blocks] = _total(sums)
            del sums
        if build:
            rotate(half, None if own is None else own.mT, grad_rows, p_index=picked)
        del half
    return (None if sums_r is None else _total(sums_r)), grad_p


def block_transform_pullback(
    weight: Tensor,
    g_r: Tensor | None,
    g_p: Tensor | None,
    grad: Tensor,
    order_out: Tensor | None,
    order_in: Tensor | None,
) -> tuple[Tensor | None, Tensor | None]:
    """:func:`poet.kernels.block_transform.block_transform_pullback_reference` in fp32, bf16 or fp16.

    The gradients are fp32, accumulated in fp32; the weight with R alone applied, and the gradient with P alone undone,
    are rounded to the weight's dtype on the way.
    """
    return _pull_back(weight, g_r, g_p, grad.to(weight.dtype), order_out, order_in, build=False)


def pull_back_and_build(
    weight: Tensor,
    g_r: Tensor | None,
    g_p: Tensor | None,
    grad: Tensor,
    order_out: Tensor | None,
    order_in: Tensor | None,
    inverse_in: Tensor | None,
) -> tuple[Tensor | None, Tensor | None]:
    """:func:`poet.kernels.block_transform.pull_back_and_build_reference` in fp32, bf16 or fp16.

    Rounded as the two that it takes the place of. The columns go to their places, so that ``inverse_in`` is not read.
    """
    return _pull_back(weight, g_r, g_p, grad, order_out, order_in, build=True)
