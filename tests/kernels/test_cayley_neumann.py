"""The map as an operator, its cost, and the error that its docstring promises."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import poet.kernels.counting  # registers what FlopCounterMode counts
from poet.kernels import cayley_neumann as kernel
from poet.kernels.skew import skew_unpack


def random_skew(count, size, norm, dtype=torch.float64):
    """Skew-symmetric (count, size, size) of the given spectral norm."""
    q = torch.randn(count, size, size, generator=torch.Generator().manual_seed(size), dtype=torch.float64)
    q = q - q.mT
    return (norm * q / torch.linalg.matrix_norm(q, ord=2)[:, None, None]).to(dtype)


@pytest.mark.parametrize("terms", range(7))
def test_registration(terms):
    q = random_skew(2, 5, 0.5).requires_grad_()
    torch.library.opcheck(kernel.cayley_neumann, (q, terms))
    torch.library.opcheck(kernel.cayley_neumann_pullback, (q.detach(), torch.randn_like(q), terms))


@pytest.mark.parametrize("terms", range(10))
def test_counted_operations_are_those_of_the_reference(terms):
    q, grad = random_skew(3, 6, 0.5), torch.randn(3, 6, 6, dtype=torch.float64)
    pairs = (
        (kernel.cayley_neumann, kernel.cayley_neumann_reference, (q, terms)),
        (kernel.cayley_neumann_pullback, kernel.cayley_neumann_pullback_reference, (q, grad, terms)),
    )
    for operator, reference, arguments in pairs:
        counts = []
        for function in (operator, reference):
            with FlopCounterMode(display=False) as counter:
                function(*arguments)
            counts.append(counter.get_total_flops())
        assert counts[0] == counts[1]


def test_the_paper_s_k_takes_two_products_and_four_back():
    q = random_skew(1, 8, 0.5)
    product = 2 * 8**3
    for function, arguments, products in (
        (kernel.cayley_neumann, (q, 3), 2),
        (kernel.cayley_neumann_pullback, (q, q, 3), 4),
    ):
        with FlopCounterMode(display=False) as counter:
            function(*arguments)
        assert counter.get_total_flops() == products * product


@pytest.mark.parametrize("terms", (1, 2, 3, 4, 5, 8))
@pytest.mark.parametrize("dtype", kernel.PROMISED_ERROR, ids=str)
def test_the_promised_error_against_fp64(dtype, terms):
    """Spectral norm 1/2 (training stays below it) and block sizes up to the paper's, other than multiples of 16."""
    for size in (16, 65, 256):
        q = random_skew(2, size, 0.5, dtype)
        grad = torch.randn(2, size, size, generator=torch.Generator().manual_seed(1)).to(dtype)
        for found, exact in (
            (kernel.cayley_neumann(q, terms), kernel.cayley_neumann_reference(q.double(), terms)),
            (
                kernel.cayley_neumann_pullback(q, grad, terms),
                kernel.cayley_neumann_pullback_reference(q.double(), grad.double(), terms),
            ),
        ):
            assert found.dtype == dtype
            assert (found - exact).norm() / exact.norm() < kernel.PROMISED_ERROR[dtype]


def test_the_promise_is_not_idle():
    """One more rounding of the square to the input's precision would break it in fp32."""
    q = random_skew(2, 256, 0.5, torch.float32)
    square = (q @ q).bfloat16().float()
    eye = torch.eye(256)
    rough = (eye + square + 2 * q) @ (eye + square)
    exact = kernel.cayley_neumann_reference(q.double(), 3)
    assert (rough - exact).norm() / exact.norm() > kernel.PROMISED_ERROR[torch.float32]


def test_unpacked_input_is_what_the_layer_maps():
    packed = 0.01 * torch.randn(2, 45)
    q = skew_unpack(packed, 10)
    r = kernel.cayley_neumann(q, 3)
    torch.testing.assert_close(r, torch.linalg.solve(torch.eye(10) - q, torch.eye(10) + q), rtol=0, atol=1e-4)
