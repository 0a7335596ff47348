"""What is computed together and how often, what is kept and when it is freed, and what a copy takes along."""

import copy
import gc
import weakref
from collections import Counter

import pytest
import torch
from torch import nn

from poet import POETConfig, apply_poet, merge_and_reinitialize
from poet.optim import poet_parameters
from tests.step_cache.models import CONFIG, assert_same_gradients, build, without_cache


def test_a_second_apply_takes_over_the_cache(randomize, x):
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).double()
    apply_poet(model, CONFIG, exclude=("1",))
    apply_poet(model, CONFIG)
    (cache,) = [hook.__self__ for hook in model._forward_pre_hooks.values() if hasattr(hook, "__self__")]
    assert cache.layers == [model[0], model[1]]
    assert all(layer._step_cache is cache for layer in model)
    model(x).sum().backward()
    assert all(skew.grad is not None for skew in poet_parameters(model))


def test_one_map_per_block_size(randomize, x, maps):
    build(randomize, depth=6)(x)
    assert len(maps) == 1


def test_one_map_per_optimizer_step(randomize, maps):
    """Four micro-batches and an evaluation amid them: factors once, and the gradients of one large batch."""
    x = torch.randn(8, 8, dtype=torch.float64)
    model = build(randomize)
    twin = without_cache(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for expected in (1, 2):
        for part in x.split(2):
            model(part).square().sum().backward()
        assert len(maps) == expected
        maps_before = len(maps)
        twin(x).square().sum().backward()
        assert_same_gradients(model, twin)
        del maps[maps_before:]  # the twin's own
        optimizer.step()
        optimizer.zero_grad()
        twin.load_state_dict(model.state_dict())
        twin.zero_grad()


def test_without_gradients_nothing_outlives_the_forward_pass(randomize, x):
    model = build(randomize)
    with torch.no_grad():
        model(x)
    cache = model[0]._step_cache
    assert cache._open is None and cache._kept is None


def test_an_optimizer_step_frees_the_batch(randomize, x):
    model = build(randomize)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).sum().backward()
    kept = weakref.ref(model[0]._step_cache._kept)
    optimizer.step()
    assert kept() is None


def test_a_model_that_is_dropped_after_a_forward_pass_is_freed(randomize, x):
    model = build(randomize)
    y = model(x)
    alive = weakref.ref(model[0])
    del model, y
    gc.collect()
    assert alive() is None


def test_a_copy_of_a_layer_leaves_its_model_behind(randomize, x):
    model = build(randomize)
    layer = copy.deepcopy(model[0])
    assert layer._step_cache is None
    torch.testing.assert_close(layer(x), model[0](x))
    twin = copy.deepcopy(model)
    assert twin[0]._step_cache is not None and twin[0]._step_cache is not model[0]._step_cache
    assert twin[0]._step_cache.layers == list(twin)


def test_a_model_within_a_model_has_one_cache(randomize, x, maps):
    inner = build(randomize)
    outer = apply_poet(nn.Sequential(inner, nn.Linear(8, 8).double()), CONFIG)
    outer(x)
    assert len(maps) == 1


def operators(function):
    """Names of the operators that a call runs, and how often."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        function()
    return Counter(event.key for event in recorded.key_averages() for _ in range(event.count))


@pytest.mark.parametrize("size", (8, 512), ids=("small", "large"))
def test_a_step_scatters_nothing(randomize, size):
    """index_put is many times slower than a gather on a CPU."""
    model = randomize(apply_poet(nn.Sequential(nn.Linear(size, size)), POETConfig(block_size=4)))
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        model(torch.randn(600, size)).sum().backward()
        optimizer.step()
        merge_and_reinitialize(model)

    step()  # makes index maps, once per block size
    found = operators(step)
    assert found["aten::index_select"] if size == 8 else found["poet::block_transform"]
    assert not [name for name in found if "index_put" in name or "scatter" in name]


def test_small_layers_share_their_calls(randomize, x):
    """As many products and selections for six layers as for two, beside one product of each layer in each direction."""
    counts = []
    for depth in (2, 6):
        model = build(randomize, depth=depth)
        found = operators(lambda model=model: model(x).sum().backward())
        counts.append({name: found[f"aten::{name}"] for name in ("bmm", "index_select", "gather", "cat")})
    assert counts[0] == counts[1] and counts[0]["bmm"] > 4
    assert not found["poet::block_transform"]
