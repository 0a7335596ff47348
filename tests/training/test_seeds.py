"""Seeds stay what they were: a changed value would change every recorded number."""

import pytest
import torch

from poet.training.seeds import derive


@pytest.mark.parametrize(
    ("axes", "value"),
    (
        (("batch order", 0), 1596489332216663482),
        (("initialization", 0), 1951853764679813548),
        (("step", 1, 2), 8360094023040776764),
    ),
)
def test_values_are_pinned(axes, value):
    assert derive(*axes) == value


def test_axes_do_not_run_together():
    axes = (("ab", "c"), ("a", "bc"), ("abc",), ("step", 1, 2), ("step", 12))
    assert len({derive(*a) for a in axes}) == 5


def test_every_seed_fits_a_torch_generator():
    for axis in range(200):
        torch.Generator().manual_seed(derive(axis))
        assert 0 <= derive(axis) < 2**63
