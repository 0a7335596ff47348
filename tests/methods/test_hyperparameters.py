"""Every hyperparameter of a method reaches the optimizer or the adapter that it is of."""

import pytest

from poet.methods import get_method


def built(name, model, **parameters):
    """(the prepared model, the first group of the first optimizer)."""
    cls = get_method(name)
    method = cls(cls.Parameters(**parameters), weight_decay=0.3)
    model = method.prepare(model, seed=0)
    return model, method.optimizers(model)[0].param_groups[0]


def has(group, **values):
    return {name: group[name] for name in values} == values


def test_galore(llama):
    _, group = built("galore", llama(), lr=0.5, rank=3, scale=0.75, refresh_every=7)
    assert has(group, lr=0.5, rank=3, scale=0.75, refresh_every=7, weight_decay=0.3)


def test_muon(llama):
    _, group = built("muon", llama(), lr=0.5, muon_lr=0.25, momentum=0.8, newton_schulz_steps=3)
    assert has(group, lr=0.25, momentum=0.8, nesterov=True, ns_steps=3, weight_decay=0.3)


def test_poet_scale_is_a_factor_on_the_rate_of_r_and_p(llama):
    _, group = built("poet", llama(), block_size=4, lr=0.5, poet_lr=0.25, poet_scale=0.5)
    assert has(group, lr=0.125, weight_decay=0.0)


@pytest.mark.parametrize(
    ("name", "parameters", "config"),
    [
        ("lora", {"rank": 4, "alpha": 6, "dropout": 0.25}, {"r": 4, "lora_alpha": 6, "lora_dropout": 0.25}),
        ("oft", {"block_size": 4, "neumann_terms": 3}, {"oft_block_size": 4, "num_cayley_neumann_terms": 3, "use_cayley_neumann": True, "r": 0}),
    ],
)
def test_adapters(llama, name, parameters, config):
    model, group = built(name, llama(), lr=0.5, adapter_lr=0.25, **parameters)
    (found,) = model.peft_config.values()
    assert {key: getattr(found, key) for key in config} == config and has(group, lr=0.25, weight_decay=0.3)
