"""Skew packing and the Cayley maps, against their definitions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from poet import orthogonal
from poet.orthogonal import block_size_of, cayley, cayley_neumann, orthogonality_error, packed_size
from poet.orthogonal import rotation_blocks, rotation_blocks_vjp, skew_pack, skew_unpack

SIZES = (2, 3, 7, 16, 33)


def random_skew(size, *leading, scale=0.5, seed=0):
    """Skew matrices (fp64) of spectral norm ``scale``."""
    q = torch.randn(*leading, size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    q = q - q.mT
    return scale * q / torch.linalg.matrix_norm(q, ord=2)[..., None, None].clamp(min=1e-30)


@pytest.mark.parametrize("size", SIZES)
def test_triangle_is_read_row_by_row(size):
    packed = torch.arange(1.0, packed_size(size) + 1)
    expected = torch.zeros(size, size)
    entry = 0
    for i in range(size):
        for j in range(i + 1, size):
            expected[i, j], expected[j, i] = packed[entry], -packed[entry]
            entry += 1
    assert torch.equal(skew_unpack(packed), expected)
    assert torch.equal(skew_pack(expected), packed)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(size=st.integers(2, 20), leading=st.lists(st.integers(0, 3), max_size=3), seed=st.integers(0, 99))
def test_pack_inverts_unpack_for_any_leading_dimensions(size, leading, seed):
    generator = torch.Generator().manual_seed(seed)
    packed = torch.randn(*leading, packed_size(size), generator=generator)
    q = skew_unpack(packed)
    assert q.shape == (*leading, size, size)
    assert torch.equal(q, -q.mT)
    assert torch.equal(skew_pack(q), packed)


def test_size_one_is_the_zero_matrix():
    packed = torch.zeros(3, 0, requires_grad=True)
    q = skew_unpack(packed, 1)
    assert torch.equal(q, torch.zeros(3, 1, 1))
    q.sum().backward()
    assert packed.grad.shape == (3, 0)


@pytest.mark.parametrize("entries", (2, 4, 5, 7, 8, 9, 11))
def test_lengths_that_are_no_triangle_are_refused(entries):
    with pytest.raises(ValueError, match="fits no b"):
        skew_unpack(torch.zeros(entries))


def test_a_block_size_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="needs 6 packed entries, got 3"):
        skew_unpack(torch.zeros(3), 4)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(size=st.integers(2, 10**6))
def test_block_size_of_inverts_packed_size(size):
    assert block_size_of(packed_size(size)) == size


@pytest.mark.parametrize("size", (2, 3, 5))
def test_unpack_gradients_of_both_orders(size):
    packed = torch.randn(2, packed_size(size), dtype=torch.float64, requires_grad=True)
    # Squared, so that the second derivative is not trivially zero.
    assert torch.autograd.gradcheck(lambda p: skew_unpack(p) ** 3, packed)
    assert torch.autograd.gradgradcheck(lambda p: skew_unpack(p) ** 3, packed)


@pytest.mark.parametrize("terms", (*range(10), None))
@pytest.mark.parametrize("size", (2, 5))
def test_the_derivative_of_the_blocks_is_that_of_the_maps(terms, size):
    packed = (0.2 * torch.randn(3, packed_size(size), dtype=torch.float64)).requires_grad_()
    weights = torch.randn(3, size, size, dtype=torch.float64)
    q = skew_unpack(packed)
    blocks = cayley(q) if terms is None else cayley_neumann(q, terms)
    (expected,) = torch.autograd.grad(blocks, packed, weights)
    with torch.no_grad():
        torch.testing.assert_close(rotation_blocks(packed, terms), blocks)
        torch.testing.assert_close(rotation_blocks_vjp(packed, weights, terms), expected, rtol=1e-11, atol=1e-12)


def products(function, size):
    """Products of b x b matrices that a call counts."""
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops() / (2 * size**3)


def test_the_paper_s_k_takes_two_products_and_four_back():
    packed, grad = torch.zeros(1, packed_size(8)), torch.zeros(1, 8, 8)
    assert products(lambda: rotation_blocks(packed, 3), 8) == 2
    assert products(lambda: rotation_blocks_vjp(packed, grad, 3), 8) == 4


#: Relative error (Frobenius norm, against fp64 on the same input) of the map and of its derivative, for spectral norms of
#: Q up to 1/2 (training stays below), any k and block size. For half precision it is the unit roundoff.
PROMISED_ERROR = {torch.float32: 1e-6, torch.bfloat16: 2**-8, torch.float16: 2**-11}


@pytest.mark.parametrize("terms", (0, 1, 2, 3, 4, 5, 8, None))
@pytest.mark.parametrize("dtype", PROMISED_ERROR, ids=str)
def test_the_promised_error_against_fp64(dtype, terms, reference):
    """Block sizes up to the paper's, other than multiples of 16."""
    for size in (16, 65, 256):
        packed = skew_pack(random_skew(size, 2)).to(dtype)
        q = skew_unpack(packed)
        grad = torch.randn(2, size, size, generator=torch.Generator().manual_seed(1)).to(dtype)
        for found, exact in (
            (cayley(q) if terms is None else cayley_neumann(q, terms), reference.cayley(q.double(), terms)),
            (rotation_blocks(packed, terms), rotation_blocks(packed.double(), terms)),
            (rotation_blocks_vjp(packed, grad, terms), rotation_blocks_vjp(packed.double(), grad.double(), terms)),
        ):
            assert found.dtype == dtype
            assert (found - exact).norm() / exact.norm() < PROMISED_ERROR[dtype]


def test_the_promise_is_not_idle():
    """One more rounding of the square to the input's precision would break it in fp32."""
    q = random_skew(256, 2).float()
    square = (q @ q).bfloat16().float()
    eye = torch.eye(256)
    rough = (eye + square + 2 * q) @ (eye + square)
    exact = cayley_neumann(q.double(), 3)
    assert (rough - exact).norm() / exact.norm() > PROMISED_ERROR[torch.float32]


@pytest.mark.parametrize("size", (1, *SIZES))
@pytest.mark.parametrize("terms", range(9))
def test_cayley_neumann_is_its_definition(size, terms, reference):
    q = random_skew(size, 2, 3, scale=1.5, seed=size)
    expected = reference.cayley(q, terms)
    torch.testing.assert_close(cayley_neumann(q, terms), expected, rtol=1e-12, atol=1e-12 * 1.5**terms)


@pytest.mark.parametrize("size", (1, *SIZES))
def test_cayley_is_its_definition_and_orthogonal(size, reference):
    q = random_skew(size, 2, scale=3.0, seed=size)
    r = cayley(q)
    torch.testing.assert_close(r, reference.cayley(q, None), rtol=1e-11, atol=1e-12)
    assert orthogonality_error(r).max() < 1e-13
    torch.testing.assert_close(torch.linalg.det(r), torch.ones(2, dtype=torch.float64))


def test_neumann_error_falls_with_the_terms_below_norm_one():
    q = random_skew(16, scale=0.8)
    distances = [(cayley_neumann(q, k) - cayley(q)).norm().item() for k in range(9)]
    assert all(after < before for before, after in zip(distances, distances[1:], strict=False)), distances
    # R_k = C (I - Q^(k+1)) with C orthogonal. For even k the power is skew and cancels in R R^T to first
    # order, so orthogonality improves within a parity, and k = 2 is closer to orthogonal than k = 3.
    errors = [orthogonality_error(cayley_neumann(q, k)).item() for k in range(9)]
    assert all(after < before for before, after in zip(errors, errors[2:], strict=False)), errors
    assert errors[2] < errors[3]


@pytest.mark.parametrize("terms", range(6))
def test_orthogonality_error_of_the_truncated_series_is_that_of_its_remainder(terms):
    q = random_skew(9, scale=0.7)
    remainder = torch.linalg.matrix_power(q, terms + 1)
    expected = (remainder @ remainder.mT - remainder - remainder.mT).norm() / 3
    torch.testing.assert_close(orthogonality_error(cayley_neumann(q, terms)), expected)


def test_orthogonality_error_known_answer():
    identity = torch.eye(5, dtype=torch.float64)
    assert orthogonality_error(identity) == 0
    # 2I: ||4I - I||_F / ||I||_F = 3, whatever the size.
    doubled = orthogonality_error(2 * identity.expand(3, 5, 5))
    torch.testing.assert_close(doubled, torch.full((3,), 3.0).double())


def test_negative_number_of_terms_is_refused():
    with pytest.raises(ValueError, match="k >= 0"):
        cayley_neumann(torch.zeros(2, 2), -1)


def test_a_use_in_inference_mode_does_not_break_later_gradients():
    orthogonal._kept_constants.cache_clear()
    with torch.inference_mode():
        skew_unpack(torch.zeros(6))
    q = torch.randn(4, 4, requires_grad=True)
    skew_pack(q).sum().backward()
    assert torch.equal(q.grad, torch.ones(4, 4).triu(1))
