"""Input of the models, and a count of the maps."""

import pytest
import torch

import poet.factors


@pytest.fixture
def x():
    return torch.randn(5, 8, dtype=torch.float64)


@pytest.fixture
def maps(monkeypatch):
    """Calls of the map in one forward direction, whoever makes them."""
    calls, original = [], poet.factors.orthogonal_factors
    monkeypatch.setattr(poet.factors, "orthogonal_factors", lambda *a: calls.append(a) or original(*a))
    return calls
