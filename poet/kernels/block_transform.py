"""The permuted two-sided block transform of a weight, and its pull-back to the blocks.

Shape suffixes: ``n`` outputs (rows of ``nn.Linear.weight``), ``m`` inputs (columns), ``k`` blocks on one side, ``b`` block
size of that side. Weights are in the permuted basis: the coordinates that a side's blocks act on come first, block after
block, so that each block is a contiguous range. A side with fewer than ``n / b`` (or ``m / b``) blocks leaves the remaining
coordinates as they are (fully stochastic SPO has one block, block-stochastic SPO covers every coordinate).

The reference goes over a weight in strips of rows: what is in the cache stays there, and besides the result a few strips
are allocated. No strip is smaller than a block of P on it.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from poet.kernels.dispatch import in_dtype_of, on_gpu, wide, without_autocast

#: Numbers in a strip, unless one block of rows has more: about what the caches of a CPU hold, and on a GPU enough to fill it.
STRIP = {"cpu": 2**20, "cuda": 2**24}

Gradients = tuple[Tensor | None, Tensor | None]


def _strips(weight: Tensor, g_p: Tensor | None) -> Iterator[tuple[int, int, slice]]:
    """(first row, row after the last, P's blocks on the first of these rows): what is worked on at a time."""
    n, m = weight.shape
    rows = max(1, STRIP.get(weight.device.type, STRIP["cuda"]) // m)
    k, b = (0, 1) if g_p is None else g_p.shape[:2]
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
    """View (s, k*b) as (k, s, b)."""
    return x.unflatten(1, (k, -1)).transpose(0, 1)


def rotate_columns(x: Tensor, g: Tensor | None) -> Tensor:
    """``x @ diag(G_1, ..., G_k, I)^T``, the R side of Equation (3) for a weight stored as (out, in). Has no derivative.

    Args:
        x: (s, m), permuted basis: rows of a weight, or of activations.
        g: (k, b, b) with k*b <= m, or None for the identity.

    Returns:
        (s, m); ``x`` itself where there is nothing to rotate.
    """
    if g is None:
        return x
    covered = _covered(g)
    rotated = torch.empty_like(x, memory_format=torch.contiguous_format)
    blocks, target = (_blocks_first(t[:, :covered], len(g)) for t in (x, rotated))
    if torch.compiler.is_compiling():  # a traced graph can't say that the product goes straight to its place
        target.copy_(torch.bmm(blocks, g.mT))
    else:
        torch.bmm(blocks, g.mT, out=target)
    if covered < x.shape[1]:
        rotated[:, covered:] = x[:, covered:]
    return rotated


def _rotate_rows(x: Tensor, g: Tensor) -> Tensor:
    """``diag(G) @ x`` for x (k*b, m) and g (k, b, b)."""
    return torch.bmm(g, x.unflatten(0, (len(g), -1))).flatten(0, 1)


def _gather_columns(x: Tensor, columns: Tensor | None) -> Tensor:
    """x[:, columns] for x (s, m)."""
    return x if columns is None else x.gather(1, columns.expand_as(x))


def _write_rows(target: Tensor, start: int, rows: Tensor, order: Tensor | None) -> None:
    """Row ``start + i`` of the permuted basis, as ``rows[i]``, to its place in ``target`` (n, m)."""
    stop, rows = start + len(rows), rows.to(target.dtype)
    if order is None:
        target[start:stop] = rows
    else:
        target.index_copy_(0, order[start:stop], rows)


def _transformed(
    weight: Tensor, g_r: Tensor | None, g_p: Tensor | None, columns: Tensor | None
) -> Iterator[tuple[int, Tensor]]:
    """(first row, the rows) of the transformed weight with its columns in another order.

    Rows are those of the permuted basis, in :func:`~poet.kernels.dispatch.wide` precision. A row of the weight is not read
    again once it has been given out.
    """
    precision = wide(weight.dtype)
    g_r, g_p = (None if g is None else g.to(precision) for g in (g_r, g_p))
    for start, stop, blocks in _strips(weight, g_p):
        rows = _gather_columns(rotate_columns(weight[start:stop].to(precision), g_r), columns)
        yield from _finished(rows, start, None if g_p is None else g_p[blocks])


def _finished(rows: Tensor, start: int, g_p: Tensor | None) -> Iterator[tuple[int, Tensor]]:
    """What :func:`_transformed` gives of one strip, from its rows without P and P's blocks on them."""
    covered = _covered(g_p)
    if covered:
        yield start, _rotate_rows(rows[:covered], g_p.mT)
    if covered < len(rows):
        yield start + covered, rows[covered:]


def _covered(g: Tensor | None) -> int:
    """Coordinates that blocks act on."""
    return 0 if g is None else g.shape[0] * g.shape[1]


def block_transform_reference(
    weight: Tensor, g_r: Tensor | None, g_p: Tensor | None, order_out: Tensor | None, inverse_in: Tensor | None
) -> Tensor:
    """W_RP = diag(G_P, I)^T @ weight @ diag(G_R, I)^T (Equation (3)), brought back from the permuted basis.

    Args:
        weight: (n, m), any floating dtype.
        g_r, g_p: (k, b, b), rounded to the weight's dtype, or None for an identity side; k and b differ between sides.
        order_out: (n,) int64, the row that each row of the permuted basis goes to; None: it stays.
        inverse_in: (m,) int64, the column of the permuted basis that each column comes from; None: it stays.

    Returns:
        (n, m), a new tensor. Half precision is computed in fp32 and rounded once.
    """
    result = torch.empty_like(weight, memory_format=torch.contiguous_format)
    for start, rows in _transformed(weight, g_r, g_p, inverse_in):
        _write_rows(result, start, rows, order_out)
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
    inverse_in: Tensor | None,
) -> Gradients:
    assert not build or grad.dtype == weight.dtype
    precision = wide(weight.dtype)
    g_r, g_p = (None if g is None else g.to(precision) for g in (g_r, g_p))
    grad_r, grad_p = None, None if g_p is None else torch.empty_like(g_p)
    for start, stop, blocks in _strips(weight, g_p):
        rows = grad[start:stop] if order_out is None else grad.index_select(0, order_out[start:stop])
        rows = _gather_columns(rows, order_in).to(precision)
        base, own = weight[start:stop].to(precision), None if g_p is None else g_p[blocks]
        half = rotate_columns(base if build else base[: _covered(own)], g_r)
        by_r, by_p = _gradients(base, half, rows, g_r, own)
        del rows, base  # before W_RP is built
        if by_p is not None:
            grad_p[blocks] = by_p
        if by_r is not None:
            grad_r = by_r if grad_r is None else grad_r.add_(by_r)
        if build:
            half = _gather_columns(half, inverse_in)
            for first, finished in _finished(half, start, own):
                _write_rows(grad, first, finished, order_out)
    return grad_r, grad_p


def _gradients(base: Tensor, half: Tensor, grad: Tensor, g_r: Tensor | None, g_p: Tensor | None) -> Gradients:
    """What one strip adds to the gradient of R's blocks, and the gradient of P's blocks on it.

    Args:
        base: (s, m), rows of the base weight.
        half: the same with R alone applied, (s, m), or of the rows that P covers alone.
        grad: (s, m), of the transformed rows, in the permuted basis.
    """
    by_r, by_p, covered = None, None, _covered(g_p)
    if covered:
        by_block, grad_by_block = (t[:covered].unflatten(0, (len(g_p), -1)) for t in (half, grad))
        by_p = torch.bmm(by_block, grad_by_block.mT)
    if g_r is not None:
        # Only the columns that R touches carry a gradient to it, so P is undone on those alone.
        grad, base = grad[:, : _covered(g_r)], base[:, : _covered(g_r)]
        parts = [(_rotate_rows(grad[:covered], g_p), base[:covered])] if covered else []
        parts += [(grad[covered:], base[covered:])] if covered < len(grad) else []
        for undone, fixed in parts:
            part = torch.bmm(_blocks_first(undone, len(g_r)).mT, _blocks_first(fixed, len(g_r)))
            by_r = part if by_r is None else by_r.add_(part)
    return by_r, by_p


def block_transform_pullback_reference(
    weight: Tensor,
    g_r: Tensor | None,
    g_p: Tensor | None,
    grad: Tensor,
    order_out: Tensor | None,
    order_in: Tensor | None,
) -> Gradients:
    """Gradients of :func:`block_transform_reference` with respect to the two sets of blocks.

    Args:
        weight, g_r, g_p, order_out: what the transform was called with.
        grad: (n, m), gradient of the loss with respect to the transformed weight.
        order_in: (m,) int64, the inverse of ``inverse_in``.

    Returns:
        (grad of g_r, grad of g_p), each (k, b, b), or None for an identity side; fp32 for half precision.
    """
    return _pull_back(weight, g_r, g_p, grad, order_out, order_in, build=False, inverse_in=None)


def pull_back_and_build_reference(
    weight: Tensor,
    g_r: Tensor | None,
    g_p: Tensor | None,
    grad: Tensor,
    order_out: Tensor | None,
    order_in: Tensor | None,
    inverse_in: Tensor | None,
) -> Gradients:
    """:func:`block_transform_pullback_reference`, and ``grad`` overwritten with what the transform gives.

    A backward pass needs both. What R makes of the weight is computed once for the two, and they take turns in the memory
    of one weight.

    Args:
        grad: (n, m), of the weight's dtype, changed in place.
        inverse_in: what the transform was called with; the others are those of the pull-back.
    """
    return _pull_back(weight, g_r, g_p, grad, order_out, order_in, build=True, inverse_in=inverse_in)


def transform_operations(weight, g_r, g_p) -> int:
    """Floating-point operations of the transform's matrix products; shapes (n, m) and (k, b, b) or None."""
    n, m = weight
    by_r = 0 if g_r is None else 2 * n * g_r[0] * g_r[1] ** 2
    by_p = 0 if g_p is None else 2 * m * g_p[0] * g_p[1] ** 2
    return by_r + by_p


def pullback_operations(weight, g_r, g_p, *, build: bool = False) -> int:
    """Floating-point operations of the pull-back's matrix products; shapes (n, m) and (k, b, b) or None.

    Args:
        build: the transformed weight is built as well, by :func:`pull_back_and_build_reference`.
    """
    total = transform_operations(weight, g_r, g_p)  # each gradient is a product of the same size
    if build:
        total += transform_operations(weight, g_r, g_p)
    if g_r is not None and g_p is not None:  # P undone for R's gradient, and the transformed half that P's needs
        covered_in, covered_out = (g[0] * g[1] for g in (g_r, g_p))
        total += 2 * covered_out * covered_in * (g_p[1] + (0 if build else g_r[1]))
    return total


@without_autocast
def merge_in_place(
    weight: Tensor, g_r: Tensor | None, g_p: Tensor | None, rows: Tensor | None, columns: Tensor | None
) -> None:
    """Replace a weight by its transform in another basis, with no second copy of it (Section 3.2.3, Step 5).

    Args:
        weight: (n, m), changed in place: diag(G_P, I)^T @ weight @ diag(G_R, I)^T, rounded once.
        g_r, g_p: (k, b, b), or None.
        rows: (n,) int64, which row of the transformed weight each new row is; None: its own.
        columns: (m,) int64, the same for columns.
    """
    n, m = weight.shape
    for start, strip in _transformed(weight, g_r, g_p, columns):
        _write_rows(weight, start, strip, None)
    if rows is None:
        return
    width = max(1, STRIP.get(weight.device.type, STRIP["cuda"]) // n)
    for start in range(0, m, width):
        part = weight[:, start : start + width]
        part.copy_(part.index_select(0, rows))


_TRANSFORM = "(Tensor weight, Tensor? g_r, Tensor? g_p, Tensor? order_out, Tensor? order_in, Tensor? inverse_in) -> Tensor"
_PULLBACK = (
    "(Tensor weight, Tensor? g_r, Tensor? g_p, Tensor grad, Tensor? order_out, Tensor? order_in) -> (Tensor, Tensor)"
)
_PULL_BACK_AND_BUILD = (
    "(Tensor weight, Tensor? g_r, Tensor? g_p, Tensor(a!) grad, Tensor? order_out, Tensor? order_in, Tensor? inverse_in)"
    " -> (Tensor, Tensor)"
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


@torch.library.custom_op("poet::pull_back_and_build", mutates_args=("grad",), schema=_PULL_BACK_AND_BUILD)
@without_autocast
def pull_back_and_build(weight, g_r, g_p, grad, order_out, order_in, inverse_in):
    """:func:`pull_back_and_build_reference` as an operator; an identity side's gradient is an empty tensor."""
    pulled = pull_back_and_build_reference(weight, g_r, g_p, grad, order_out, order_in, inverse_in)
    return _or_empty(weight, pulled)


def _or_empty(weight: Tensor, gradients: Gradients) -> tuple[Tensor, Tensor]:
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


@pull_back_and_build.register_kernel("cuda")
@without_autocast
def _(weight, g_r, g_p, grad, order_out, order_in, inverse_in):
    pull_back = on_gpu(pull_back_and_build_reference, weight.dtype)
    return _or_empty(weight, pull_back(weight, *in_dtype_of(weight, g_r, g_p), grad, order_out, order_in, inverse_in))


@block_transform.register_fake
def _(weight, g_r, g_p, order_out, order_in, inverse_in):
    return torch.empty_like(weight, memory_format=torch.contiguous_format)


@block_transform_pullback.register_fake
@pull_back_and_build.register_fake
def _(weight, g_r, g_p, *rest):
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
