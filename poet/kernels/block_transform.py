"""The permuted two-sided block transform of weights, and its pull-back to the blocks.

Shape suffixes: ``l`` weights of one shape, transformed together, ``n`` outputs (rows of ``nn.Linear.weight``), ``m``
inputs (columns), ``k`` blocks on one side, ``b`` block size of that side. Weights are in the permuted basis: the
coordinates that a side's blocks act on come first, block after block, so that each block is a contiguous range. A side
with fewer than ``n / b`` (or ``m / b``) blocks leaves the remaining coordinates as they are (fully stochastic SPO has one
block, block-stochastic SPO covers every coordinate).

The reference goes over a weight in strips of rows: what is in the cache stays there, and besides the result nothing
larger than a strip is allocated.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from poet.kernels.dispatch import in_dtype_of, on_gpu, wide, without_autocast

#: Numbers in a strip, unless one block of rows has more: about what the caches of a CPU hold, and on a GPU enough to fill it.
STRIP = {"cpu": 2**20, "cuda": 2**24}


def _strips(weight: Tensor, g_p: Tensor | None) -> Iterator[tuple[int, int, slice]]:
    """(first row, row after the last, P's blocks on the first of these rows): what is worked on at a time."""
    count, n, m = weight.shape
    rows = max(1, STRIP.get(weight.device.type, STRIP["cuda"]) // (count * m))
    k, b = (0, 1) if g_p is None else g_p.shape[1:3]
    if n <= rows:
        yield 0, n, slice(0, k)
        return
    group = max(1, rows // b)
    for first in range(0, k, group):
        last = min(k, first + group)
        yield first * b, last * b, slice(first, last)
    for first in range(k * b, n, rows):
        yield first, min(n, first + rows), slice(0, 0)


def _blocks_first(x: Tensor, k: int) -> Tensor:
    """View (..., s, k*b) as (..., k, s, b)."""
    return x.unflatten(-1, (k, -1)).transpose(-3, -2)


def rotate_columns(x: Tensor, g: Tensor | None) -> Tensor:
    """``x @ diag(G_1, ..., G_k, I)^T``, the R side of Equation (3) for weights stored as (out, in). Has no derivative.

    Args:
        x: (l, s, m), permuted basis: rows of weights, or of activations.
        g: (l, k, b, b) with k*b <= m, or None for the identity.

    Returns:
        (l, s, m); ``x`` itself where there is nothing to rotate.
    """
    if g is None:
        return x
    k, b = g.shape[1:3]
    covered = k * b
    rotated = torch.empty_like(x, memory_format=torch.contiguous_format)
    blocks, target = (_blocks_first(t[:, :, :covered], k) for t in (x, rotated))
    if torch.compiler.is_compiling() or (len(x) > 1 and k > 1):
        target.copy_(torch.matmul(blocks, g.mT))
    else:  # one batch dimension: the product goes straight to its place, which a traced graph can't say
        at = (0,) if len(x) == 1 else (slice(None), 0)
        torch.bmm(blocks[at], g[at].mT, out=target[at])
    if covered < x.shape[2]:
        rotated[:, :, covered:] = x[:, :, covered:]
    return rotated


def _rotate_rows(x: Tensor, g: Tensor) -> Tensor:
    """``diag(G) @ x`` for x (l, k*b, m) and g (l, k, b, b)."""
    return torch.matmul(g, x.unflatten(1, (g.shape[1], -1))).flatten(1, 2)


def _flat_rows(order: Tensor) -> Tensor:
    """Row numbers (l, n) of the weights put under each other."""
    if len(order) == 1:
        return order
    return order + torch.arange(len(order), device=order.device)[:, None] * order.shape[1]


def _gather_columns(x: Tensor, columns: Tensor | None) -> Tensor:
    """x[l, :, columns[l]] for x (l, s, m)."""
    return x if columns is None else x.gather(2, columns[:, None].expand_as(x))


def _transformed(
    weight: Tensor, g_r: Tensor | None, g_p: Tensor | None, columns: Tensor | None
) -> Iterator[tuple[int, int, Tensor]]:
    """(first row, row after the last, the rows) of the transformed weight with its columns in another order.

    Rows are those of the permuted basis, in :func:`~poet.kernels.dispatch.wide` precision. A row of the weight is not read
    again once it has been given out.
    """
    precision = wide(weight.dtype)
    g_r, g_p = (None if g is None else g.to(precision) for g in (g_r, g_p))
    for start, stop, blocks in _strips(weight, g_p):
        rows = _gather_columns(rotate_columns(weight[:, start:stop].to(precision), g_r), columns)
        covered = 0 if g_p is None else (blocks.stop - blocks.start) * g_p.shape[2]
        if covered:
            yield start, start + covered, _rotate_rows(rows[:, :covered], g_p[:, blocks].mT)
        if start + covered < stop:
            yield start + covered, stop, rows[:, covered:]


def block_transform_reference(
    weight: Tensor, g_r: Tensor | None, g_p: Tensor | None, order_out: Tensor | None, inverse_in: Tensor | None
) -> Tensor:
    """W_RP = diag(G_P, I)^T @ weight @ diag(G_R, I)^T (Equation (3)), brought back from the permuted basis.

    Args:
        weight: (l, n, m), any floating dtype.
        g_r, g_p: (l, k, b, b), rounded to the weight's dtype, or None for an identity side; k and b differ between sides.
        order_out: (l, n) int64, the row that each row of the permuted basis goes to; None: it stays.
        inverse_in: (l, m) int64, the column of the permuted basis that each column comes from; None: it stays.

    Returns:
        (l, n, m), a new tensor. Half precision is computed in fp32 and rounded once.
    """
    m = weight.shape[2]
    result = torch.empty_like(weight, memory_format=torch.contiguous_format)
    flat_rows = None if order_out is None else _flat_rows(order_out)
    for start, stop, rows in _transformed(weight, g_r, g_p, inverse_in):
        if flat_rows is None:
            result[:, start:stop] = rows
        else:
            picked = flat_rows[:, start:stop].flatten()
            result.view(-1, m).index_copy_(0, picked, rows.to(weight.dtype).flatten(0, 1))
    return result


def block_transform_pullback_reference(
    weight: Tensor,
    g_r: Tensor | None,
    g_p: Tensor | None,
    grad: Tensor,
    order_out: Tensor | None,
    order_in: Tensor | None,
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of :func:`block_transform_reference` with respect to the two sets of blocks.

    Args:
        weight, g_r, g_p, order_out: what the transform was called with.
        grad: (l, n, m), gradient of the loss with respect to the transformed weights.
        order_in: (l, m) int64, the inverse of ``inverse_in``.

    Returns:
        (grad of g_r, grad of g_p), each (l, k, b, b), or None for an identity side; fp32 for half precision.
    """
    count, _, m = weight.shape
    precision = wide(weight.dtype)
    g_r, g_p = (None if g is None else g.to(precision) for g in (g_r, g_p))
    grad_r, grad_p = None, None if g_p is None else torch.empty_like(g_p)
    flat_rows = None if order_out is None else _flat_rows(order_out)
    for start, stop, blocks in _strips(weight, g_p):
        if flat_rows is None:
            rows = grad[:, start:stop]
        else:
            picked = flat_rows[:, start:stop].flatten()
            rows = grad.reshape(-1, m).index_select(0, picked).unflatten(0, (count, -1))
        rows = _gather_columns(rows, order_in).to(precision)
        base = weight[:, start:stop].to(precision)
        k = blocks.stop - blocks.start
        covered = 0 if g_p is None else k * g_p.shape[2]
        if covered:
            half = rotate_columns(base[:, :covered], g_r).unflatten(1, (k, -1))
            grad_p[:, blocks] = torch.matmul(half, rows[:, :covered].unflatten(1, (k, -1)).mT)
        if g_r is None:
            continue
        # Only the columns that R touches carry a gradient to it, so P is undone on those alone.
        k, touched = g_r.shape[1], g_r.shape[1] * g_r.shape[2]
        rows, base = rows[:, :, :touched], base[:, :, :touched]
        parts = [(_rotate_rows(rows[:, :covered], g_p[:, blocks]), base[:, :covered])] if covered else []
        parts += [(rows[:, covered:], base[:, covered:])] if start + covered < stop else []
        for by_row, origin in parts:
            part = torch.matmul(_blocks_first(by_row, k).mT, _blocks_first(origin, k))
            grad_r = part if grad_r is None else grad_r.add_(part)
    return grad_r, grad_p


def transform_operations(weight, g_r, g_p) -> int:
    """Floating-point operations of the transform's matrix products; shapes (l, n, m) and (..., k, b, b) or None."""
    count, n, m = weight
    by_r = 0 if g_r is None else 2 * n * g_r[-3] * g_r[-1] ** 2
    by_p = 0 if g_p is None else 2 * m * g_p[-3] * g_p[-1] ** 2
    return count * (by_r + by_p)


def pullback_operations(weight, g_r, g_p) -> int:
    """Floating-point operations of the pull-back's matrix products; shapes (l, n, m) and (..., k, b, b) or None."""
    count, n, m = weight
    total = 0
    if g_r is not None:
        total += 2 * n * g_r[-3] * g_r[-1] ** 2
    if g_p is not None:
        total += 2 * m * g_p[-3] * g_p[-1] ** 2
    if g_r is not None and g_p is not None:  # the transformed half that P's gradient needs, and P undone for R's
        covered_in, covered_out = (g[-3] * g[-1] for g in (g_r, g_p))
        total += 2 * covered_out * covered_in * (g_r[-1] + g_p[-1])
    return count * total


@without_autocast
def merge_in_place(
    weight: Tensor, g_r: Tensor | None, g_p: Tensor | None, rows: Tensor | None, columns: Tensor | None
) -> None:
    """Replace each weight by its transform in another basis, with no second copy of it (Section 3.2.3, Step 5).

    Args:
        weight: (l, n, m), changed in place: diag(G_P, I)^T @ weight @ diag(G_R, I)^T, rounded once.
        g_r, g_p: (l, k, b, b), or None.
        rows: (l, n) int64, which row of the transformed weight each new row is; None: its own.
        columns: (l, m) int64, the same for columns.
    """
    count, n, m = weight.shape
    for start, stop, strip in _transformed(weight, g_r, g_p, columns):
        weight[:, start:stop] = strip
    if rows is None:
        return
    width = max(1, STRIP.get(weight.device.type, STRIP["cuda"]) // (count * n))
    for start in range(0, m, width):
        part = weight[:, :, start : start + width]
        part.copy_(part.gather(1, rows[:, :, None].expand_as(part)))


_TRANSFORM = "(Tensor weight, Tensor? g_r, Tensor? g_p, Tensor? order_out, Tensor? order_in, Tensor? inverse_in) -> Tensor"
_PULLBACK = (
    "(Tensor weight, Tensor? g_r, Tensor? g_p, Tensor grad, Tensor? order_out, Tensor? order_in) -> (Tensor, Tensor)"
)


@torch.library.custom_op("poet::block_transform", mutates_args=(), schema=_TRANSFORM)
@without_autocast
def block_transform(weight, g_r, g_p, order_out, order_in, inverse_in):
    """:func:`block_transform_reference` as an operator; its derivative needs ``order_in`` too.

    Triton kernels on a GPU; differentiable once, in g_r and g_p (the base weight is fixed).
    """
    return block_transform_reference(weight, g_r, g_p, order_out, inverse_in)


@torch.library.custom_op("poet::block_transform_pullback", mutates_args=(), schema=_PULLBACK)
@without_autocast
def block_transform_pullback(weight, g_r, g_p, grad, order_out, order_in):
    """:func:`block_transform_pullback_reference` as an operator; an identity side's gradient is an empty tensor."""
    pulled = block_transform_pullback_reference(weight, g_r, g_p, grad, order_out, order_in)
    return _or_empty(weight, pulled)


def _or_empty(weight: Tensor, gradients: tuple[Tensor | None, Tensor | None]) -> tuple[Tensor, Tensor]:
    """Operators return tensors alone."""
    return tuple(weight.new_empty(0) if gradient is None else gradient for gradient in gradients)


@block_transform.register_kernel("cuda")
@without_autocast
def _(weight, g_r, g_p, order_out, order_in, inverse_in):
    factors = in_dtype_of(weight, g_r, g_p)
    return on_gpu(block_transform_reference, weight.dtype)(weight, *factors, order_out, inverse_in)


@block_transform_pullback.register_kernel("cuda")
@without_autocast
def _(weight, g_r, g_p, grad, order_out, order_in):
    pull_back = on_gpu(block_transform_pullback_reference, weight.dtype)
    return _or_empty(weight, pull_back(weight, *in_dtype_of(weight, g_r, g_p, grad), order_out, order_in))


@block_transform.register_fake
def _(weight, g_r, g_p, order_out, order_in, inverse_in):
    return torch.empty_like(weight, memory_format=torch.contiguous_format)


@block_transform_pullback.register_fake
def _(weight, g_r, g_p, grad, order_out, order_in):
    gradients = (None if g is None else torch.empty_like(g, dtype=wide(g.dtype)) for g in (g_r, g_p))
    return _or_empty(weight, tuple(gradients))


def _setup(ctx, inputs, output) -> None:
    weight, g_r, g_p, order_out, order_in, _ = inputs
    ctx.save_for_backward(weight, g_r, g_p, order_out, order_in)


def _backward(ctx, grad: Tensor):
    weight, g_r, g_p, order_out, order_in = ctx.saved_tensors
    if ctx.needs_input_grad[0]:
        raise RuntimeError("the base weight of a POET layer is fixed: it has no gradient")
    pulled = block_transform_pullback(weight, g_r, g_p, grad, order_out, order_in)
    grad_r, grad_p = (None if g is None else p.to(g.dtype) for g, p in zip((g_r, g_p), pulled, strict=True))
    return None, grad_r, grad_p, None, None, None


torch.library.register_autograd("poet::block_transform", _backward, setup_context=_setup)
