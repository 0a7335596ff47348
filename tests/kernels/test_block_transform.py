"""The block transform and its pull-back, against dense block-diagonal products and autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from poet.kernels.block_transform import block_transform, block_transform_pullback
from poet.kernels.block_transform import rotate_inputs, rotate_outputs

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


def random_case(n, m, side_r, side_p, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    g_r, g_p = (None if side is None else draw(side[0], side[1], side[1]) for side in (side_r, side_p))
    return draw(n, m), g_r, g_p, draw(n, m)


def dense(blocks, size):
    """diag(G_1, ..., G_k, I), (size, size)."""
    if blocks is None:
        return torch.eye(size, dtype=torch.float64)
    covered = blocks.shape[0] * blocks.shape[1]
    return torch.block_diag(*blocks, torch.eye(size - covered, dtype=torch.float64))


def check(n, m, side_r, side_p, seed=0):
    weight, g_r, g_p, grad = random_case(n, m, side_r, side_p, seed)
    original = weight.clone()
    for blocks in (g_r, g_p):
        if blocks is not None:
            blocks.requires_grad_()
    expected = dense(g_p, n).T @ weight @ dense(g_r, m).T
    found = block_transform(weight, g_r, g_p)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(weight, original)
    leaves = [blocks for blocks in (g_r, g_p) if blocks is not None]
    gradients = iter(torch.autograd.grad(expected, leaves, grad) if leaves else ())
    by_autograd = iter(torch.autograd.grad(found, leaves, grad) if leaves else ())
    with torch.no_grad():
        pulled = block_transform_pullback(weight, g_r, g_p, grad)
    for blocks, found_gradient in zip((g_r, g_p), pulled, strict=True):
        if blocks is None:
            assert found_gradient is None
            continue
        expected_gradient = next(gradients)
        torch.testing.assert_close(found_gradient, expected_gradient, rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(next(by_autograd), expected_gradient, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_transform_and_pullback_equal_dense_products(case):
    check(*case)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_transform_and_pullback_for_any_shape_and_budget(drawn):
    n, m, seed = (drawn.draw(st.integers(*limits)) for limits in ((1, 17), (1, 17), (0, 99)))

    def side(size):
        if drawn.draw(st.booleans()):
            return None
        b = drawn.draw(st.integers(1, size))
        return drawn.draw(st.integers(1, size // b)), b

    check(n, m, side(m), side(n), seed)


def test_gradient_with_respect_to_the_weight():
    weight, g_r, g_p, _ = random_case(6, 8, (2, 3), (1, 4))
    assert torch.autograd.gradcheck(block_transform, (weight.requires_grad_(), g_r.requires_grad_(), g_p))


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_dtype_is_kept(dtype):
    weight, g_r, g_p, grad = (t.to(dtype) for t in random_case(12, 20, (5, 4), (3, 4)))
    assert block_transform(weight, g_r, g_p).dtype == dtype
    assert {g.dtype for g in block_transform_pullback(weight, g_r, g_p, grad)} == {dtype}


def test_transpose_false_undoes_an_orthogonal_rotation():
    weight, _, _, _ = random_case(6, 5, None, None)
    rotation = torch.linalg.qr(torch.randn(2, 3, 3, dtype=torch.float64)).Q
    back = rotate_outputs(rotate_outputs(weight, rotation), rotation, transpose=False)
    torch.testing.assert_close(back, weight)
    assert rotate_inputs(weight, None) is weight and rotate_outputs(weight, None) is weight
