"""The packing kernels and the on-chip map against their references in :mod:`poet.orthogonal`."""

import pytest
import torch

from poet.kernels import rotation as kernels
from poet.orthogonal import cayley_neumann, packed_size, skew_pack, skew_unpack
from tests.kernels.ahead_of_time import Compilation

FP32, BF16, FP16 = torch.float32, torch.bfloat16, torch.float16
#: Below, at and above a tile's edge, several tiles, two and three of them.
BLOCKS = (2, 3, 15, 16, 17, 33, 64, 65, 100, 130)
#: Every block size that stays on chip with the paper's k, and other k at an awkward size.
MAPS = [(b, 3, dtype) for b in BLOCKS for dtype in (FP32, BF16) if b <= kernels.ON_CHIP[dtype.itemsize]]
MAPS += [(17, terms, dtype) for terms in (1, 2, 4, 8) for dtype in (FP32, BF16)] + [(65, 5, FP16), (33, 8, FP16)]
OPERATORS = (
    (kernels.skew_unpack, lambda: (torch.randn(2, packed_size(5)), 5)),
    (kernels.skew_pack_difference, lambda: (torch.randn(2, 5, 5),)),
    (kernels.cayley_neumann_packed, lambda: (0.1 * torch.randn(2, packed_size(5)), 5, 3)),
)


def compilations() -> list[Compilation]:
    common = {"num_warps": kernels.NUM_WARPS, "num_stages": 3, "divisible": ("b",)}
    found = [
        Compilation(kernel=kernel, signature=signature, constants={"TILE": kernels.TILE}, **common)
        for kernel, signature in (
            (kernels._unpack_kernel, {"packed_ptr": "*fp32", "q_ptr": "*fp32", "b": "i32"}),
            (kernels._pack_kernel, {"h_ptr": "*fp32", "packed_ptr": "*fp32", "b": "i32"}),
        )
    ]
    for kind, blocks in (("*bf16", (32, 64, 128)), ("*fp16", (128,)), ("*fp32", (32, 64))):
        found += [
            Compilation(
                kernel=kernels._cayley_neumann_kernel,
                signature={"packed_ptr": kind, "out_ptr": kind, "b": "i32", "terms": "i32"},
                constants={**kernels.on_chip_tile(b), "PRECISION": "tf32x3" if kind == "*fp32" else "ieee"},
                overrides={"gfx942": {"PRECISION": "ieee"}},
                **{**common, "num_stages": 2},
            )
            for b in blocks
        ]
    return found


def drawn(b, dtype, device, batch=2):
    """Packed Q of spectral norm about 1/2."""
    generator = torch.Generator().manual_seed(b)
    packed = torch.randn(batch, packed_size(b), generator=generator, dtype=torch.float64) / (4 * b**0.5)
    return packed.to(device, dtype)


@pytest.mark.parametrize("b", BLOCKS)
def test_packing_equals_the_reference_bit_for_bit(b, device):
    packed, h = drawn(b, FP32, device), torch.randn(2, b, b, device=device)
    assert torch.equal(kernels.skew_unpack(packed, b), skew_unpack(packed, b))
    assert torch.equal(kernels.skew_pack_difference(h), skew_pack(h - h.mT))


def allowed(dtype, b):
    """Bound on ||R - fp64|| / ||R||. u, half of eps, is the largest relative error of one rounding; its mean square is
    (0.4 u)^2. In half precision R is rounded once, and each operand once: (2I + ...) is of norm 2 to 3 and is
    multiplied by Q, of norm 1/2, so that the operands add (0.5 u)^2, (0.25 u)^2, ...; together 0.7 u at most, and u is
    allowed. In fp32 the sums of b products count too: sqrt(b) u / 4 in the mean, and as much again is allowed.
    """
    u = torch.finfo(dtype).eps / 2
    return u if dtype != FP32 else (2 + b**0.5 / 2) * u


@pytest.mark.parametrize(("b", "terms", "dtype"), MAPS, ids=str)
def test_the_map_is_as_precise_as_its_roundings_allow(b, terms, dtype, device):
    packed = drawn(b, dtype, device)
    found = kernels.cayley_neumann_packed(packed, b, terms)
    assert found.dtype == dtype
    exact = cayley_neumann(skew_unpack(packed.double(), b), terms)
    assert (found.double() - exact).norm() / exact.norm() <= allowed(dtype, b)
    assert torch.equal(kernels.cayley_neumann_packed(packed, b, terms), found)


def test_blocks_too_large_for_the_chip_are_left_to_others(device):
    for dtype, largest in ((FP32, 64), (BF16, 128)):
        packed = torch.empty(1, 1, device=device, dtype=dtype)
        assert [kernels.fits_on_chip(b, packed) for b in (1, 2, largest, largest + 1)] == [False, True, True, False]


def test_inputs_need_not_be_contiguous(device):
    packed = drawn(4, FP32, device, batch=10)[::2]
    assert torch.equal(kernels.skew_unpack(packed, 4), skew_unpack(packed, 4))
    assert torch.equal(kernels.cayley_neumann_packed(packed, 4, 3), kernels.cayley_neumann_packed(packed.contiguous(), 4, 3))
    h = torch.randn(2, 5, 5, device=device).mT
    assert torch.equal(kernels.skew_pack_difference(h), skew_pack(h - h.mT))
    assert not kernels.skew_pack_difference(torch.ones(1, 1, 1, device=device).expand(2, 5, 5)).any()


@pytest.mark.parametrize(("batch", "b"), [(0, 4), (2, 1), (0, 1)])
def test_nothing_to_do(batch, b, device):
    packed = torch.zeros(batch, packed_size(b), device=device)
    q = kernels.skew_unpack(packed, b)
    assert torch.equal(q, torch.zeros(batch, b, b, device=device))
    assert torch.equal(kernels.skew_pack_difference(q), packed)


@pytest.mark.parametrize(("operator", "arguments"), OPERATORS, ids=lambda v: getattr(v, "_name", ""))
def test_registration(operator, arguments, device):
    """Schema, fake tensors and tracing agree with what the operator does."""
    torch.library.opcheck(operator, [a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments()])
