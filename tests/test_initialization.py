"""The four initializations of Table 5."""

import pytest
import torch

from poet.initialization import INITIALIZATIONS


def draw(name, n, m, seed=0):
    return INITIALIZATIONS[name](n, m, torch.Generator().manual_seed(seed))


def test_names_are_the_four_of_table_5():
    assert set(INITIALIZATIONS) == {"standard", "xavier", "uniform_spectrum", "normalized"}


@pytest.mark.parametrize("name", INITIALIZATIONS)
def test_equal_seeds_give_equal_weights_whatever_the_global_state(name):
    first = draw(name, 12, 20)
    torch.manual_seed(1)
    assert torch.equal(first, draw(name, 12, 20))
    assert not torch.equal(first, draw(name, 12, 20, seed=1))
    assert first.shape == (12, 20) and first.dtype == torch.float32


def test_normalized_neurons_have_unit_norm():
    weight = draw("normalized", 30, 50)
    torch.testing.assert_close(weight.norm(dim=1), torch.ones(30))
    assert (weight.norm(dim=0) - 1).abs().max() > 0.05  # rows, not columns
    # A normalized Gaussian row is a Gaussian row, rescaled: the direction is the same draw's.
    raw = draw("standard", 30, 50)
    torch.testing.assert_close(weight, raw / raw.norm(dim=1, keepdim=True))


@pytest.mark.parametrize("shape", ((12, 20), (20, 12), (16, 16)))
def test_uniform_spectrum_has_all_singular_values_one(shape):
    values = torch.linalg.svdvals(draw("uniform_spectrum", *shape).double())
    torch.testing.assert_close(values, torch.ones(min(shape)).double(), rtol=0, atol=1e-6)  # fp32 storage


@pytest.mark.parametrize(("name", "deviation"), (("standard", 0.02), ("xavier", (2 / 700) ** 0.5)))
def test_gaussian_moments(name, deviation):
    weight = draw(name, 300, 400)
    # 120,000 draws: the standard deviation's own standard error is 0.2 %, the mean's 0.3 % of the deviation.
    assert weight.std().item() == pytest.approx(deviation, rel=0.01)
    assert abs(weight.mean().item()) < 0.015 * deviation
