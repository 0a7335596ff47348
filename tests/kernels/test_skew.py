"""Packing as an operator; what it computes is tested in tests/test_orthogonal.py."""

import pytest
import torch

from poet.kernels.skew import packed_size, skew_pack, skew_unpack


@pytest.mark.parametrize("size", (1, 2, 5, 17))
@pytest.mark.parametrize("antisymmetrize", (True, False))
def test_registration(size, antisymmetrize):
    packed = torch.randn(3, packed_size(size), dtype=torch.float64, requires_grad=True)
    q = torch.randn(3, size, size, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(skew_unpack, (packed, size))
    torch.library.opcheck(skew_pack, (q, antisymmetrize))
    assert torch.autograd.gradcheck(lambda t: skew_pack(t, antisymmetrize) ** 3, q)
    assert torch.autograd.gradgradcheck(lambda t: skew_pack(t, antisymmetrize) ** 3, q)


@pytest.mark.parametrize("size", (2, 5, 17))
def test_packing_with_signs_is_the_adjoint_of_unpacking(size):
    packed = torch.randn(3, packed_size(size), dtype=torch.float64)
    other = torch.randn(3, size, size, dtype=torch.float64)
    torch.testing.assert_close((skew_unpack(packed, size) * other).sum(), (packed * skew_pack(other, True)).sum())


def test_transposed_input():
    q = torch.randn(2, 5, 5).mT
    upper = torch.triu_indices(5, 5, offset=1)
    assert torch.equal(skew_pack(q, False), q[:, upper[0], upper[1]])
