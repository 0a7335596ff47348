"""The Cayley-Neumann kernels against the reference in fp64: on chip and tiled, forward and pull-back."""

import math

import pytest
import torch

from poet.kernels.cayley_neumann import cayley_neumann_pullback_reference, cayley_neumann_reference
from poet.kernels.gpu import cayley_neumann as gpu
from poet.kernels.gpu import products
from poet.kernels.skew import packed_size, skew_unpack_reference
from tests.kernels.gpu.ahead_of_time import SHARED_MEMORY, Compilation, configurations

FP32, BF16, FP16 = torch.float32, torch.bfloat16, torch.float16
BLOCKS = (2, 3, 15, 16, 17, 33, 64, 65, 100, 130)
TERMS = (0, 1, 2, 3, 4, 5, 8)
#: Every block size with the paper's k, in the formats that training uses, and every k at an awkward size.
CASES = [(b, 3, dtype) for b in BLOCKS for dtype in (FP32, BF16)]
CASES += [(17, terms, dtype) for terms in TERMS if terms != 3 for dtype in (FP32, BF16)]
CASES += [(2, 1, FP16), (33, 8, FP16), (65, 5, FP16), (100, 3, FP16), (130, 4, BF16), (65, 2, FP32)]


def compilations() -> list[Compilation]:
    half, full, scalar = "*bf16", "*fp32", "fp32"
    precisions = {"*bf16": "ieee", "*fp16": "ieee", "*fp32": "tf32x3"}

    def product(kind, additive, configs, **fields):
        signature = {
            "a_ptr": kind, "b_ptr": kind, "c_ptr": additive, "d_ptr": kind, "out_ptr": additive, "second_ptr": kind,
            "size": "i32", "sign": scalar, "of_c": scalar, "of_d": scalar, "of_identity": scalar, "second_of_d": scalar,
        }  # fmt: skip
        return matrix_kernel(products._product_kernel, signature, kind, configs, **fields)

    def symmetric(kind, configs, **fields):
        signature = {
            "a_ptr": kind, "b_ptr": kind, "c_ptr": kind, "d_ptr": kind, "out_ptr": kind, "second_ptr": kind,
            "size": "i32", "of_c": scalar, "second_of_d": scalar,
        }  # fmt: skip
        return matrix_kernel(products._symmetric_kernel, signature, kind, configs, **fields)

    def matrix_kernel(kernel, signature, kind, configs, **fields):
        return configurations(
            configs,
            configs[0],
            kernel=kernel,
            signature=signature,
            constants={"PRECISION": precisions[kind]},
            overrides={"gfx942": {"PRECISION": "ieee"}},
            divisible=("size",),
            **fields,
        )

    def on_chip(kind, element_size, b, targets=tuple(SHARED_MEMORY)):
        blocks, num_warps, shared = gpu.horner_launch(b, element_size)
        return Compilation(
            kernel=gpu._horner_kernel,
            signature={"q_ptr": kind, "out_ptr": kind, "b": "i32", "terms": "i32"},
            constants={**blocks, "PRECISION": precisions[kind]},
            num_warps=num_warps,
            num_stages=2,
            default=True,
            divisible=("b",),
            targets=tuple(target for target in targets if shared <= SHARED_MEMORY[target]),
            counted_shared=shared,
            overrides={"gfx942": {"PRECISION": "ieee"}},
        )

    def with_transpose(kind, result):
        return Compilation(
            kernel=products._with_transpose_kernel,
            signature={"a_ptr": kind, "out_ptr": result, "size": "i32", "factor": scalar, "sign": scalar},
            constants={"TILE": products.TILE},
            num_warps=4,
            num_stages=3,
            default=True,
            divisible=("size",),
        )

    # The widest epilogue (fp32 to add to a half-precision product) at every configuration; the narrower ones, and fp16,
    # which is laid out as bf16, at the default where the promise is made.
    hopper = ("sm_90",)
    found = [
        *product(half, full, products.PRODUCT_CONFIGS[2]),
        *product(half, half, products.PRODUCT_CONFIGS[2][:1], targets=hopper),
        *product(full, full, products.PRODUCT_CONFIGS[4]),
        *product("*fp16", full, products.PRODUCT_CONFIGS[2][:1], targets=hopper),
        *symmetric(half, products.SYMMETRIC_CONFIGS[2]),
        *symmetric(full, products.SYMMETRIC_CONFIGS[4]),
        *symmetric("*fp16", products.SYMMETRIC_CONFIGS[2][:1], targets=hopper),
        with_transpose(full, half),
        with_transpose(full, full),
        on_chip("*fp16", 2, 256, hopper),
    ]
    found += [on_chip(half, 2, b) for b in (32, 64, 128, 256)]
    found += [on_chip(full, 4, b) for b in (32, 64)]
    return found


def drawn(b, dtype, device, batch=2):
    """Q of spectral norm about 1/2, and a gradient, as numbers of ``dtype``."""
    generator = torch.Generator().manual_seed(b)
    packed = torch.randn(batch, packed_size(b), generator=generator, dtype=torch.float64) / (4 * math.sqrt(b))
    grad = torch.randn(batch, b, b, generator=generator, dtype=torch.float64)
    return skew_unpack_reference(packed, b).to(device, dtype), grad.to(device, dtype)


def allowed(dtype, b):
    """Bound on ||R - fp64|| / ||R||. u, half of eps, is the largest relative error of one rounding; its mean square is
    (0.4 u)^2. In half precision R is rounded once, and each operand once: (2I + ...) is of norm 2 to 3 and is
    multiplied by Q, of norm 1/2, so that the operands add (0.5 u)^2, (0.25 u)^2, ...; together 0.7 u at most, and u is
    allowed. In fp32 the sums of b products count too: sqrt(b) u / 4 in the mean, and as much again is allowed.
    """
    u = torch.finfo(dtype).eps / 2
    return u if dtype != FP32 else (2 + math.sqrt(b) / 2) * u


def error(found, expected):
    return ((found.double() - expected).norm() / expected.norm()).item()


def check_forward(function, b, terms, dtype, device):
    q, _ = drawn(b, dtype, device)
    found = function(q, terms)
    assert found.dtype == dtype and found.shape == q.shape
    assert error(found, cayley_neumann_reference(q.double(), terms)) <= allowed(dtype, b)
    assert torch.equal(function(q, terms), found)


def check_pullback(b, terms, dtype, device):
    q, grad = drawn(b, dtype, device)
    found = gpu.cayley_neumann_pullback(q, grad, terms)
    expected = cayley_neumann_pullback_reference(q.double(), grad.double(), terms)
    assert found.dtype == dtype
    # S is rounded after each of its parts was: twice the roundings of the forward pass.
    assert error(found, expected) <= 2 * allowed(dtype, b)
    assert torch.equal(found, -found.mT)
    assert torch.equal(gpu.cayley_neumann_pullback(q, grad, terms), found)


@pytest.mark.parametrize(("b", "terms", "dtype"), CASES, ids=str)
def test_forward_as_it_is_called(b, terms, dtype, device):
    check_forward(gpu.cayley_neumann, b, terms, dtype, device)


@pytest.mark.parametrize(("b", "terms", "dtype"), [case for case in CASES if case[1]], ids=str)
def test_tiled(b, terms, dtype, device):
    check_forward(gpu._tiled, b, terms, dtype, device)


@pytest.mark.parametrize(("b", "terms", "dtype"), CASES, ids=str)
def test_pullback(b, terms, dtype, device):
    check_pullback(b, terms, dtype, device)


def test_blocks_too_large_for_the_chip_are_tiled(device):
    for dtype, largest in ((FP32, 64), (BF16, 256)):
        assert gpu._stays_on_chip(torch.empty(1, largest, largest, device=device, dtype=dtype))
        assert not gpu._stays_on_chip(torch.empty(1, largest + 1, largest + 1, device=device, dtype=dtype))


def test_every_configuration_sums_in_one_order():
    """What makes a result independent of the autotuner's choice."""
    for size in (2, 4):
        configs = (*products.PRODUCT_CONFIGS[size], *products.SYMMETRIC_CONFIGS[size])
        assert len({config.kwargs["BLOCK_K"] for config in configs}) == 1


def test_configurations_other_than_the_default(device, monkeypatch):
    others = (
        ("_tuned_product", products._product_kernel, products.PRODUCT_CONFIGS[2][1:]),
        ("_tuned_symmetric", products._symmetric_kernel, products.SYMMETRIC_CONFIGS[2][1:]),
    )
    for i in range(max(len(configs) for _, _, configs in others)):
        for name, kernel, configs in others:
            monkeypatch.setattr(products, name, products._tuned(kernel, {2: (configs[min(i, len(configs) - 1)],)}))
        check_forward(gpu._tiled, 130, 3, BF16, device)
        check_pullback(130, 3, BF16, device)


def test_a_gradient_that_is_a_view(device):
    q, _ = drawn(5, FP32, device)
    gradient = torch.ones(1, 1, 1, device=device).expand(2, 5, 5)
    expected = cayley_neumann_pullback_reference(q, gradient.contiguous(), 3)
    torch.testing.assert_close(gpu.cayley_neumann_pullback(q, gradient, 3), expected)
    torch.testing.assert_close(gpu.cayley_neumann(q.mT, 3), cayley_neumann_reference(q.mT.contiguous(), 3))


@pytest.mark.parametrize(("batch", "b"), [(0, 4), (2, 1)])
def test_nothing_to_rotate(batch, b, device):
    q = torch.zeros(batch, b, b, device=device)
    assert torch.equal(gpu.cayley_neumann(q, 3), cayley_neumann_reference(q, 3))
    assert torch.equal(gpu.cayley_neumann_pullback(q, torch.ones_like(q), 3), q)
