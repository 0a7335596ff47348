"""AdamW's initialization control."""

import pytest
import torch

from poet.methods.adamw import METHOD, Parameters
from poet.methods.contract import is_counted


def test_normalized_initialization_touches_the_matrices_alone(llama):
    plain, model = llama(), METHOD(Parameters(init="normalized")).prepare(llama(), seed=3)
    for (name, parameter), kept in zip(model.named_parameters(), plain.parameters(), strict=True):
        if is_counted(name):
            assert torch.allclose(parameter.norm(dim=1), torch.ones(len(parameter)), atol=1e-6), name
        else:
            assert torch.equal(parameter, kept), name
    again = METHOD(Parameters(init="normalized")).prepare(llama(), seed=3)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    other, attention = METHOD(Parameters(init="normalized")).prepare(llama(), seed=4), model.model.layers[0].self_attn
    for weight in (attention.k_proj.weight, other.model.layers[0].self_attn.q_proj.weight):
        assert not torch.equal(attention.q_proj.weight, weight)  # each matrix and each seed has draws of its own


def test_the_default_keeps_the_model(llama):
    prepared = METHOD(Parameters()).prepare(llama(), seed=3)
    assert all(torch.equal(a, b) for a, b in zip(prepared.parameters(), llama().parameters(), strict=True))


def test_an_unknown_initialization_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="init is one of standard, xavier, uniform_spectrum, normalized, keep; got 'orthogonal'"):
        Parameters(init="orthogonal")
