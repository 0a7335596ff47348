"""Input of the models, and a count of the maps."""

import pytest
import torch

import poet.factors
import poet.small_layers


@pytest.fixture
def x():
    return torch.randn(5, 8, dtype=torch.float64)


@pytest.fixture
def maps(monkeypatch):
    """Calls of the map in one forward direction, whoever makes them: of a layer alone, of large and of small layers."""
    calls = []
    for module, name in ((poet.factors, "orthogonal_factors"), (poet.small_layers, "HeldFactors")):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, original=original: calls.append(a) or original(*a))
    return calls
