"""The packing kernels against their reference: they move data, so every comparison is of bits."""

import pytest
import torch

from poet.kernels.gpu import skew
from poet.kernels.skew import packed_size, skew_pack_reference, skew_unpack_reference
from tests.kernels.gpu.ahead_of_time import Compilation

#: Below, at and above a tile's edge, several tiles, two and three of them.
BLOCKS = (2, 3, 15, 16, 17, 33, 64, 65, 100, 130)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def compilations() -> list[Compilation]:
    found = []
    for kind in ("*bf16", "*fp32"):
        for kernel, constants in (
            (skew._unpack_kernel, {}),
            (skew._pack_kernel, {"ANTISYMMETRIZE": False}),
            (skew._pack_kernel, {"ANTISYMMETRIZE": True}),
        ):
            found.append(
                Compilation(
                    kernel=kernel,
                    signature={"packed_ptr": kind, "q_ptr": kind, "b": "i32"},
                    constants={"TILE": skew.TILE, **constants},
                    num_warps=skew.NUM_WARPS,
                    num_stages=3,
                    default=True,
                    divisible=("b",),
                )
            )
    return found


def drawn(*shape, dtype, device):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(device, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("b", BLOCKS)
def test_both_directions_equal_the_reference(b, dtype, device):
    packed = drawn(2, packed_size(b), dtype=dtype, device=device)
    q = skew.skew_unpack(packed, b)
    assert q.dtype == dtype and torch.equal(q, skew_unpack_reference(packed, b))
    full = drawn(2, b, b, dtype=dtype, device=device)
    for antisymmetrize in (False, True):
        found = skew.skew_pack(full, antisymmetrize)
        assert found.dtype == dtype and torch.equal(found, skew_pack_reference(full, antisymmetrize))


def test_inputs_need_not_be_contiguous(device):
    packed = drawn(10, 6, dtype=torch.float32, device=device)[::2]
    assert torch.equal(skew.skew_unpack(packed, 4), skew_unpack_reference(packed, 4))
    full = drawn(2, 5, 5, dtype=torch.float32, device=device).mT
    assert torch.equal(skew.skew_pack(full, False), skew_pack_reference(full, False))
    gradient = torch.ones(1, 1, 1, device=device).expand(2, 5, 5)
    assert torch.equal(skew.skew_pack(gradient, True), torch.zeros(2, 10, device=device))


@pytest.mark.parametrize(("batch", "b"), [(0, 4), (2, 1), (0, 1)])
def test_nothing_to_do(batch, b, device):
    q = skew.skew_unpack(torch.empty(batch, packed_size(b), device=device).zero_(), b)
    assert torch.equal(q, torch.zeros(batch, b, b, device=device))
    assert skew.skew_pack(q, True).shape == (batch, packed_size(b))
