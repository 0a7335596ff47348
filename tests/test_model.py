"""apply_poet and export_dense on whole models, and their state dicts. Merges: tests/test_merging.py; copies: tests/support/."""

import copy
from itertools import combinations

import pytest
import torch
from torch import nn

from poet import POETConfig, POETLinear, apply_poet, export_dense
from poet.model import poet_layers

BS = POETConfig(block_size=4, init="keep")
FS = POETConfig(variant="fs", budget=0.25, init="keep")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def mlp(bias=True):
    return nn.Sequential(nn.Linear(8, 12, bias=bias), nn.GELU(), nn.Linear(12, 4, bias=bias)).double()


@pytest.mark.parametrize("config", (BS, FS), ids=("bs", "fs"))
def test_every_linear_of_a_llama_but_the_head_is_replaced(llama, config):
    model = apply_poet(llama(), config, generator=seeded())
    assert len(list(poet_layers(model))) == 2 * 7
    assert [n for n, m in model.named_modules() if type(m) is nn.Linear] == ["lm_head"]


def test_biases_are_kept_and_trained():
    model = mlp()
    biases = [model[0].bias.detach().clone(), model[2].bias.detach().clone()]
    apply_poet(model, POETConfig(block_size=4), generator=seeded())
    for layer, bias in zip((model[0], model[2]), biases, strict=True):
        assert torch.equal(layer.bias, bias) and layer.bias.requires_grad


@pytest.mark.parametrize("frozen", ("weight", "bias"))
def test_what_was_frozen_stays_frozen(frozen):
    model = mlp()
    getattr(model[0], frozen).requires_grad_(False)
    apply_poet(model, POETConfig(block_size=4), generator=seeded())
    still = {name for name, parameter in model.named_parameters() if not parameter.requires_grad} - {"0.base_weight", "2.base_weight"}
    assert still == ({"0.bias"} if frozen == "bias" else {"0.skew_r", "0.skew_p"})


@pytest.mark.parametrize("init", ("standard", "xavier", "uniform_spectrum", "normalized"))
def test_other_initializations_replace_the_weight(init, llama):
    config = POETConfig(block_size=4, init=init)
    models = [apply_poet(llama(seed), config, generator=seeded()) for seed in (0, 1)]
    for (_, a), (_, b) in zip(*map(poet_layers, models), strict=True):
        assert torch.equal(a.base_weight, b.base_weight)


def test_equal_generators_give_equal_models(llama):
    config = POETConfig(block_size=4)
    a, b, c = (apply_poet(llama(), config, generator=seeded(s)).state_dict() for s in (0, 0, 1))
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert any(not torch.equal(a[k], c[k]) for k in a if k.endswith("permutation_in"))


def test_layers_of_one_shape_start_with_weights_and_coordinates_of_their_own(llama):
    model = apply_poet(llama(), POETConfig(block_size=4), generator=seeded())
    squares = [layer for name, layer in poet_layers(model) if "self_attn" in name]
    assert len(squares) == 2 * 4
    for a, b in combinations(squares, 2):
        assert not torch.equal(a.effective_weight(), b.effective_weight())
        assert not torch.equal(a.permutation_in, b.permutation_in) and not torch.equal(a.permutation_out, b.permutation_out)


@pytest.mark.parametrize(
    ("exclude", "left"),
    (
        (("lm_head", "mlp.up_proj"), 3),
        (("model.layers.0.self_attn.q_proj", "lm_head"), 2),
        ((), 0),
        (("lm_head", "layers.0"), 1 + 7),
        (("mlp", "lm_head"), 2 * 3 + 1),
    ),
)
def test_exclude_by_full_name_or_last_parts(llama, exclude, left):
    config = POETConfig(block_size=4)
    model = apply_poet(llama(), config, exclude=exclude, generator=seeded())
    plain = [n for n, m in model.named_modules() if type(m) is nn.Linear]
    assert len(plain) == left and all(any(f".{e}." in f".{n}." for e in exclude) for n in plain)


def test_a_refused_model_stays_whole_and_the_layer_is_named():
    model = nn.ModuleDict({"first": nn.Linear(8, 8), "second": nn.Linear(8, 10)})
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="layer second: .*4 does not divide dimension 10: choose a divisor"):
        apply_poet(model, BS)
    assert [type(m) for m in model.values()] == [nn.Linear, nn.Linear]
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


def test_nothing_to_replace_is_an_error():
    with pytest.raises(ValueError, match="found no nn.Linear"):
        apply_poet(nn.Sequential(nn.GELU()), BS)


def test_a_bare_linear_can_be_the_model():
    layer = apply_poet(nn.Linear(8, 8), BS)
    assert isinstance(layer, POETLinear)
    layer(torch.randn(2, 8)).sum().backward()
    assert type(export_dense(layer)) is nn.Linear


def test_a_linear_with_two_names_stays_one_layer():
    model = nn.Module()
    model.first = model.second = nn.Linear(8, 8)
    apply_poet(model, BS, generator=seeded())
    assert isinstance(model.first, POETLinear) and model.second is model.first
    export_dense(model)
    assert type(model.first) is nn.Linear and model.second is model.first


def test_state_dict_round_trip(randomize):
    source = randomize(apply_poet(mlp(), BS, generator=seeded(1)))
    target = apply_poet(mlp(), BS, generator=seeded(2))
    x = torch.randn(3, 8, dtype=torch.float64)
    target(x)
    target.load_state_dict(source.state_dict())
    assert torch.equal(target(x), source(x))


@pytest.mark.parametrize(
    ("other", "field"),
    (
        ({"block_size": 4, "neumann_terms": 5}, "neumann_terms=3 instead of 5"),
        ({"block_size": 4, "merge_every": 7}, "merge_every=400 instead of 7"),
        ({"variant": "fs", "budget": 0.5}, "variant='bs' instead of 'fs'"),
    ),
)
@pytest.mark.parametrize("strict", (True, False))
def test_a_state_dict_is_not_loaded_under_another_configuration(other, field, strict):
    state = apply_poet(mlp(), BS, generator=seeded(1)).state_dict()
    target = apply_poet(mlp(), POETConfig(**other), generator=seeded(2))
    before = copy.deepcopy(target.state_dict())
    with pytest.raises(ValueError, match=f"the state dict of layer 0 is of another POETConfig, with {field}"):
        target.load_state_dict(state, strict=strict)
    assert all(torch.equal(before[k], v) for k, v in target.state_dict().items())


def test_a_state_dict_forgets_where_weights_came_from():
    state = apply_poet(mlp(), BS, generator=seeded(1)).state_dict()
    config = POETConfig(block_size=4, init="normalized")
    apply_poet(mlp(), config, generator=seeded(2)).load_state_dict(state)


def test_a_state_dict_from_before_it_knew_its_configuration_is_loaded():
    source, target = (apply_poet(mlp(), BS, generator=seeded(i)) for i in (1, 2))
    old = {k: v for k, v in source.state_dict().items() if not k.endswith("_extra_state")}
    assert len(old) == len(source.state_dict()) - 2
    assert not target.load_state_dict(old).missing_keys
    assert all(torch.equal(a, b) for a, b in zip(source.state_dict().values(), target.state_dict().values(), strict=True))
    with pytest.raises(RuntimeError, match="Missing key.*0.skew_r"):
        target.load_state_dict({k: v for k, v in old.items() if k != "0.skew_r"})


def test_a_state_dict_goes_through_safetensors(tmp_path, randomize):
    from safetensors.torch import load_file, save_file

    source = randomize(apply_poet(mlp(), BS, generator=seeded(1)))
    save_file(source.state_dict(), tmp_path / "a.safetensors")
    target = apply_poet(mlp(), BS, generator=seeded(2))
    target.load_state_dict(load_file(tmp_path / "a.safetensors"))
    x = torch.randn(3, 8, dtype=torch.float64)
    assert torch.equal(target(x), source(x))


def test_meta_device_build_and_materialization(llama, architecture, randomize):
    from poet.training.llama import build_llama

    config = POETConfig(block_size=4)
    model = apply_poet(build_llama(architecture, device="meta"), config, generator=seeded())
    assert all(t.is_meta for _, layer in poet_layers(model) for t in layer.state_dict().values())
    real = randomize(apply_poet(llama(), config, generator=seeded()))
    for (name, a), (_, b) in zip(model.named_parameters(), real.named_parameters(), strict=True):
        assert a.shape == b.shape, name
    model.load_state_dict(real.state_dict(), assign=True)
    for (_, a), (_, b) in zip(poet_layers(model), poet_layers(real), strict=True):
        assert torch.equal(a.effective_weight(), b.effective_weight())


def test_an_export_draws_nothing():
    model = apply_poet(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), BS)
    before = torch.get_rng_state()
    export_dense(model)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_model_s_own_save_pretrained_stays(llama):
    model, own = llama(), lambda *arguments: None
    model.save_pretrained = own
    export_dense(apply_poet(model, BS))
    assert model.save_pretrained is own
