"""The transform of stacked small weights is that of ``block_transform``, in every layout of sides, forward and back."""

import itertools

import pytest
import torch

from poet.kernels.block_transform import block_transform_pullback_reference, block_transform_reference
from poet.kernels.dispatch import wide
from poet.kernels.stacked_transform import StackedTransform

#: (k, b) of R and P by (outputs, inputs).
LAYOUTS = {
    "block-stochastic": ((24, 16), (4, 4), (3, 8)),
    "one block a side": ((8, 12), (1, 12), (1, 8)),
    "fully stochastic": ((25, 14), (1, 7), (1, 11)),
    "all of R": ((9, 6), (1, 6), (1, 5)),
    "all of P": ((9, 6), (1, 5), (1, 9)),
    "no R": ((12, 10), (0, 0), (3, 4)),
    "no P": ((12, 10), (5, 2), (0, 0)),
    "one block of R alone": ((12, 10), (1, 7), (0, 0)),
}


def stacked(layout, count=3, dtype=torch.float64):
    """(base, g_r, g_p, orders, the transform): block matrices need not be orthogonal."""
    (n, m), r, p = LAYOUTS[layout]
    base = torch.randn(count, n, m, dtype=dtype)
    g_r, g_p = (None if k == 0 else torch.randn(count, k, b, b, dtype=dtype) for k, b in (r, p))
    order_in, order_out = (
        torch.stack([torch.randperm(size) if k else torch.arange(size) for _ in range(count)])
        for size, (k, _) in ((m, r), (n, p))
    )
    orders = order_in, order_in.argsort(1), order_out, order_out.argsort(1)
    scratch = torch.full((2, base.numel() + 5), torch.nan, dtype=wide(dtype))  # what is not written to shows
    return base, g_r, g_p, orders, StackedTransform(base, r, p, orders, scratch)


def flat(g):
    return None if g is None else g.flatten(0, 1)


def reference(base, g_r, g_p, orders, grad):
    """Weight by weight."""
    order_in, inverse_in, order_out, _ = orders
    out = None if g_p is None else order_out
    of_in, to_in = (None, None) if g_r is None else (order_in, inverse_in)
    parts = []
    for i in range(len(base)):
        w, r, p, dy, rows, columns, sources = (None if t is None else t[i] for t in (base, g_r, g_p, grad, out, of_in, to_in))
        pulled = block_transform_pullback_reference(w, r, p, dy, rows, columns)
        parts.append((block_transform_reference(w, r, p, rows, sources), *pulled))
    built, *pulled = (None if ts[0] is None else torch.stack(ts) for ts in zip(*parts, strict=True))
    return built, tuple(pulled)


def assert_pulled_back(transform, blocks, given, pieces, gradients, wanted):
    """The gradients of both sides, written to where nothing was, are those of the reference."""
    found = [None if g is None else torch.full_like(flat(g), torch.nan) for g in blocks]
    transform.pull_back(*given, pieces, gradients, *found)
    for own, g, expected in zip(found, blocks, wanted, strict=True):
        if g is not None:
            torch.testing.assert_close(own.view(g.shape), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_is_the_block_transform(layout):
    base, g_r, g_p, orders, transform = stacked(layout)
    grad = torch.randn_like(base)
    expected, pulled = reference(base, g_r, g_p, orders, grad)
    pieces, built = transform.build(flat(g_r), flat(g_p))
    torch.testing.assert_close(built.view(base.shape), expected)
    for _ in range(2):  # what is held may be used again
        assert_pulled_back(transform, (g_r, g_p), (flat(g_r), flat(g_p)), pieces, grad.unbind(), pulled)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_factors_are_identities(layout):
    """Of both sides or of one: what a step after a merge has."""
    base, g_r, g_p, orders, transform = stacked(layout)
    grad = torch.randn_like(base)
    for without_r, without_p in itertools.product((True, False), repeat=2):
        factors = [
            g if g is None or not without else torch.eye(g.shape[-1], dtype=g.dtype).expand_as(g)
            for g, without in ((g_r, without_r), (g_p, without_p))
        ]
        expected, pulled = reference(base, *factors, orders, grad)
        given = [None if without else flat(g) for g, without in ((g_r, without_r), (g_p, without_p))]
        pieces, built = transform.build(*given)
        torch.testing.assert_close(built.view(base.shape), expected)
        assert_pulled_back(transform, (g_r, g_p), given, pieces, grad.unbind(), pulled)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_weight_without_gradient_has_a_gradient_of_zero(layout):
    base, g_r, g_p, orders, transform = stacked(layout)
    grad = torch.randn_like(base)
    pieces, _ = transform.build(flat(g_r), flat(g_p))
    without = [grad[0], None, grad[2]]
    grad[1] = 0
    _, pulled = reference(base, g_r, g_p, orders, grad)
    assert not any(wanted[1].any() for wanted in pulled if wanted is not None)
    assert_pulled_back(transform, (g_r, g_p), (flat(g_r), flat(g_p)), pieces, without, pulled)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_merge_is_the_weight_in_another_basis(layout):
    base, g_r, g_p, orders, transform = stacked(layout)
    count, n, m = base.shape
    rotated_r, rotated_p = g_r is not None, g_p is not None
    new_in = torch.stack([torch.randperm(m) if rotated_r else torch.arange(m) for _ in range(count)])
    new_out = torch.stack([torch.randperm(n) if rotated_p else torch.arange(n) for _ in range(count)])
    merged = transform.merged(flat(g_r), flat(g_p), new_in, new_out)
    built = transform.build(flat(g_r), flat(g_p))[1].view(base.shape)
    expected = [w[rows][:, columns] for w, rows, columns in zip(built, new_out, new_in, strict=True)]
    assert torch.equal(merged, torch.stack(expected))
    new = new_in, new_in.argsort(1), new_out, new_out.argsort(1)
    after = transform.again(merged, new)
    torch.testing.assert_close(after.build(None, None)[1], built.flatten(0, 1))
    torch.testing.assert_close(transform.build(flat(g_r), flat(g_p))[1], built.flatten(0, 1))  # which is what it was


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float32))
def test_results_are_rounded_once(dtype):
    base, g_r, g_p, orders, transform = stacked("block-stochastic", dtype=dtype)
    factors = [g.to(wide(dtype)) for g in (g_r, g_p)]
    exact, _ = reference(base.double(), *(g.double() for g in factors), orders, torch.zeros(base.shape).double())
    built = transform.build(*map(flat, factors))[1].view(base.shape)
    assert built.dtype == dtype
    rounding = {torch.bfloat16: 2**-9, torch.float16: 2**-12, torch.float32: 1e-6}[dtype]
    assert ((built.double() - exact).norm() / exact.norm()) < rounding
