"""Entropy and energy against values worked out by hand."""

import math

import pytest
import torch

from poet.diagnostics import hyperspherical_energy, singular_value_entropy


def test_entropy_of_known_spectra():
    assert singular_value_entropy(torch.ones(7)).item() == pytest.approx(1)
    assert singular_value_entropy(torch.tensor([3.0, 0.0, 0.0])).item() == 0
    shares = torch.tensor([0.9, 0.1])
    expected = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1)) / math.log(2)
    assert singular_value_entropy(5 * shares.sqrt()).item() == pytest.approx(expected, rel=1e-6)


def test_entropy_is_batched_and_wants_two_values():
    assert singular_value_entropy(torch.rand(3, 4, 5)).shape == (3, 4)
    with pytest.raises(ValueError, match="n = 1"):
        singular_value_entropy(torch.ones(3, 1))


def test_energy_of_known_neurons():
    # A square on the circle: four sides of sqrt(2), two diagonals of 2, each pair twice; lengths do not matter.
    square = torch.tensor([[3.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [0.0, -2.0]])
    assert hyperspherical_energy(square).item() == pytest.approx(2 * (4 / math.sqrt(2) + 2 / 2))
    assert hyperspherical_energy(torch.tensor([[1.0, 0.0], [2.0, 0.0]])).item() == math.inf


def test_energy_is_kept_by_r_and_not_by_p():
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    r, p = (torch.linalg.qr(torch.randn(k, k, generator=generator, dtype=torch.float64))[0] for k in (4, 6))
    before = hyperspherical_energy(weight).item()
    assert hyperspherical_energy(weight @ r).item() == pytest.approx(before, rel=1e-9)
    assert hyperspherical_energy(p @ weight).item() != pytest.approx(before, rel=1e-3)
