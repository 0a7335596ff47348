"""The block transform, its pull-back and the merge, against dense block-diagonal products and autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

import poet.kernels.counting  # registers what FlopCounterMode counts
from poet.kernels import block_transform as kernel

# (n, m, (k_r, b_r), (k_p, b_p)); None is an identity side.
CASES = (
    (12, 20, (5, 4), (3, 4)),
    (12, 20, (1, 7), (1, 5)),
    (9, 15, (5, 3), (1, 4)),
    (7, 11, (2, 5), (3, 2)),
    (7, 11, None, (1, 7)),
    (7, 11, (1, 11), None),
    (7, 11, None, None),
    (33, 17, (1, 1), (11, 3)),
)


@pytest.fixture(params=(2**20, 20), ids=("one strip", "many strips"))
def strip(request, monkeypatch):
    monkeypatch.setitem(kernel.STRIP, "cpu", request.param)


def random_case(n, m, side_r, side_p, seed=0, permuted=True):
    """(weight, g_r, g_p, grad, order_out, order_in), fp64."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def order(size):
        return torch.randperm(size, generator=generator) if permuted else None

    g_r, g_p = (None if side is None else draw(side[0], side[1], side[1]) for side in (side_r, side_p))
    return draw(n, m), g_r, g_p, draw(n, m), order(n), order(m)


def dense(blocks, size):
    """diag(G_1, ..., G_k, I), (size, size)."""
    if blocks is None:
        return torch.eye(size, dtype=torch.float64)
    covered = blocks.shape[0] * blocks.shape[1]
    return torch.block_diag(*blocks, torch.eye(size - covered, dtype=torch.float64))


def expected_transform(weight, g_r, g_p, order_out, order_in):
    """Equation (3), and each entry put where it belongs by hand."""
    n, m = weight.shape
    transformed = dense(g_p, n).T @ weight @ dense(g_r, m).T
    rows = torch.arange(n) if order_out is None else order_out
    columns = torch.arange(m) if order_in is None else order_in
    placed = torch.empty_like(transformed)
    placed[rows[:, None], columns[None, :]] = transformed
    return placed


def inverse(order):
    return None if order is None else order.argsort()


def check(weight, g_r, g_p, grad, order_out, order_in):
    original = weight.clone()
    for blocks in (g_r, g_p):
        if blocks is not None:
            blocks.requires_grad_()
    leaves = [blocks for blocks in (g_r, g_p) if blocks is not None]
    expected = expected_transform(weight, g_r, g_p, order_out, order_in)
    gradients = torch.autograd.grad(expected, leaves, grad) if leaves else ()
    found = kernel.block_transform(weight, g_r, g_p, order_out, order_in, inverse(order_in))
    torch.testing.assert_close(found, expected.detach(), rtol=1e-12, atol=1e-12)
    assert torch.equal(weight, original)
    by_operator = torch.autograd.grad(found, leaves, grad) if leaves else ()
    torch.testing.assert_close(by_operator, gradients, rtol=1e-11, atol=1e-11)
    with torch.no_grad():
        pulled = kernel.block_transform_pullback_reference(weight, g_r, g_p, grad, order_out, order_in)
    assert [p is None for p in pulled] == [g is None for g in (g_r, g_p)]
    torch.testing.assert_close(tuple(p for p in pulled if p is not None), gradients, rtol=1e-11, atol=1e-11)
    with torch.no_grad():
        again = kernel.pull_back_and_build_reference(weight, g_r, g_p, grad, order_out, order_in, inverse(order_in))
    torch.testing.assert_close(again, pulled, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(grad, expected.detach(), rtol=1e-12, atol=1e-12)
    assert torch.equal(weight, original)


@pytest.mark.parametrize("permuted", (True, False))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_transform_and_pullback_equal_dense_products(case, permuted, strip):
    check(*random_case(*case, permuted=permuted))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_transform_and_pullback_for_any_shape_and_budget(drawn):
    n, m, seed = (drawn.draw(st.integers(*limits)) for limits in ((1, 17), (1, 17), (0, 99)))

    def side(size):
        if drawn.draw(st.booleans()):
            return None
        b = drawn.draw(st.integers(1, size))
        return drawn.draw(st.integers(1, size // b)), b

    before = kernel.STRIP["cpu"]
    kernel.STRIP["cpu"] = drawn.draw(st.sampled_from((10, 100, 2**20)))
    try:
        check(*random_case(n, m, side(m), side(n), seed))
    finally:
        kernel.STRIP["cpu"] = before


@pytest.mark.parametrize("case", CASES, ids=str)
def test_merge_in_place_equals_the_transform_in_another_basis(case, strip):
    weight, g_r, g_p, _, rows, columns = random_case(*case)
    transformed = expected_transform(weight, g_r, g_p, None, None)
    expected = transformed[rows][:, columns]
    address = weight.data_ptr()
    kernel.merge_in_place(weight, g_r, g_p, rows, columns)
    torch.testing.assert_close(weight, expected, rtol=1e-12, atol=1e-12)
    assert weight.data_ptr() == address


def test_merge_in_place_without_permutations():
    weight, g_r, g_p, *_ = random_case(12, 20, (5, 4), (1, 5))
    expected = expected_transform(weight, g_r, g_p, None, None)
    kernel.merge_in_place(weight, g_r, g_p, None, None)
    torch.testing.assert_close(weight, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_registration(case):
    """Schema, fake tensors, autograd and tracing agree with what the operator does."""
    weight, g_r, g_p, grad, order_out, order_in = random_case(*case)
    transform = (weight, g_r, g_p, order_out, order_in, inverse(order_in))
    torch.library.opcheck(kernel.block_transform, transform)
    torch.library.opcheck(kernel.block_transform_pullback, (weight, g_r, g_p, grad, order_out, order_in))
    torch.library.opcheck(kernel.pull_back_and_build, (weight, g_r, g_p, grad, *transform[3:]))
    if g_r is not None:
        trained = (weight, g_r.requires_grad_(), g_p, *transform[3:])
        torch.library.opcheck(kernel.block_transform, trained)


def test_the_base_weight_has_no_gradient():
    weight, g_r, g_p, *_ = random_case(6, 8, (2, 3), (1, 4))
    y = kernel.block_transform(weight.requires_grad_(), g_r, g_p, None, None, None)
    with pytest.raises(RuntimeError, match="base weight of a POET layer is fixed"):
        y.sum().backward()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_counted_operations_are_those_of_the_reference(case, strip):
    weight, g_r, g_p, grad, order_out, order_in = random_case(*case)
    calls = (
        (kernel.block_transform, (weight, g_r, g_p, order_out, order_in, inverse(order_in))),
        (kernel.block_transform_reference, (weight, g_r, g_p, order_out, inverse(order_in))),
        (kernel.block_transform_pullback, (weight, g_r, g_p, grad, order_out, order_in)),
        (kernel.block_transform_pullback_reference, (weight, g_r, g_p, grad, order_out, order_in)),
        (kernel.pull_back_and_build, (weight, g_r, g_p, grad.clone(), order_out, order_in, inverse(order_in))),
        (kernel.pull_back_and_build_reference, (weight, g_r, g_p, grad.clone(), order_out, order_in, inverse(order_in))),
    )
    counts = []
    for function, arguments in calls:
        with FlopCounterMode(display=False) as counter:
            function(*arguments)
        counts.append(counter.get_total_flops())
    assert counts[::2] == counts[1::2]


@pytest.mark.parametrize(("dtype", "bound"), ((torch.float32, 1e-6), (torch.bfloat16, 4e-3), (torch.float16, 5e-4)))
def test_half_precision_is_rounded_once(dtype, bound):
    """Bounds: the unit roundoff, 2^-9 and 2^-12 times sqrt(1/3) to sqrt(4), of the results; gradients stay in fp32."""
    generator = torch.Generator().manual_seed(0)
    weight, _, _, grad, order_out, order_in = random_case(48, 64, None, None)
    g_r, g_p = (torch.linalg.qr(torch.randn(k, 16, 16, generator=generator, dtype=torch.float64)).Q for k in (4, 3))
    low = [t.to(dtype) for t in (weight, g_r, g_p, grad)]
    wide = [t.double() for t in low]
    found = kernel.block_transform_reference(*low[:3], order_out, inverse(order_in))
    expected = kernel.block_transform_reference(*wide[:3], order_out, inverse(order_in))
    assert found.dtype == dtype
    assert (found - expected).norm() / expected.norm() < bound
    pulled = kernel.block_transform_pullback_reference(*low, order_out, order_in)
    for ours, exact in zip(pulled, kernel.block_transform_pullback_reference(*wide, order_out, order_in), strict=True):
        assert ours.dtype == torch.float32
        assert (ours - exact).norm() / exact.norm() < 1e-6
