"""The model-wide batch of factors: never stale, and no change to what autograd allows."""

import copy
import gc
import weakref
from collections import Counter
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import poet.factors
from poet import POETConfig, apply_poet, merge_and_reinitialize
from poet.batching import SMALL
from poet.factors import orthogonal_factors
from poet.model import poet_layers
from poet.optim import poet_parameters
from poet.step_cache import StepCache

CONFIG = POETConfig(block_size=4, neumann_terms=3)


def build(randomize, depth=3, config=CONFIG):
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(depth)]).double()
    return randomize(apply_poet(model, config, generator=torch.Generator().manual_seed(0)))


def without_cache(model):
    """A twin whose layers compute their own factors."""
    twin = copy.deepcopy(model)
    StepCache.remove_from(twin)
    for _, layer in poet_layers(twin):
        layer._step_cache = None
    return twin


def gradients(model):
    return {name: p.grad for name, p in model.named_parameters()}


def assert_same_gradients(model, twin):
    for name, gradient in gradients(twin).items():
        if not twin.get_parameter(name).requires_grad:
            continue
        torch.testing.assert_close(gradients(model)[name], gradient, rtol=1e-11, atol=1e-12)


def assert_fresh(model):
    """Every layer, called alone, uses factors of its present parameters, with and without a graph."""
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            for _, layer in poet_layers(model):
                for found, skew in zip(layer.factors(), (layer.skew_r, layer.skew_p), strict=True):
                    expected = orthogonal_factors(skew, layer.config.neumann_terms)
                    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)


@pytest.fixture
def x():
    return torch.randn(5, 8, dtype=torch.float64)


@pytest.mark.parametrize(
    "config",
    (
        CONFIG,
        POETConfig(variant="fs", budget_r=0.5, budget_p=0.75),
        POETConfig(block_size_r=2, block_size_p=4, neumann_terms=None),
        POETConfig(block_size=4, block_size_p=0),
    ),
    ids=("bs", "fs", "two sizes", "one side"),
)
def test_the_batch_equals_layer_by_layer(randomize, x, config):
    model = build(randomize, config=config)
    twin = without_cache(model)
    torch.testing.assert_close(model(x), twin(x), rtol=1e-13, atol=1e-13)
    model(x).square().sum().backward()
    twin(x).square().sum().backward()
    assert_same_gradients(model, twin)


def test_two_models_in_one_backward(randomize, x):
    model = build(randomize)
    twin = without_cache(model)
    for m in (model, twin):
        (m(x).sum() + m(2 * x).square().sum()).backward()
    assert_same_gradients(model, twin)


@pytest.mark.parametrize("order", ((0, 1), (1, 0)))
def test_two_forwards_then_two_backwards(randomize, x, order):
    model = build(randomize)
    twin = without_cache(model)
    for m in (model, twin):
        losses = [m(x).sum(), m(2 * x).square().sum()]
        for index in order:
            losses[index].backward()
    assert_same_gradients(model, twin)


def test_accumulated_micro_batches_equal_one_batch(randomize):
    x = torch.randn(8, 8, dtype=torch.float64)
    model = build(randomize)
    twin = without_cache(model)
    for part in x.split(2):
        model(part).square().sum().backward()
    twin(x).square().sum().backward()
    assert_same_gradients(model, twin)


def test_branches_of_one_forward_can_be_differentiated_one_after_the_other(randomize, x):
    """A plain model allows it: the branches share no graph."""

    class TwoHeads(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8).double(), nn.Linear(8, 8).double()

        def forward(self, x):
            return self.a(x).square().sum(), self.b(x).square().sum()

    model = randomize(apply_poet(TwoHeads(), CONFIG))
    twin = without_cache(model)
    for m in (model, twin):
        for loss in m(x):
            loss.backward()
    assert_same_gradients(model, twin)


def test_retained_graphs_can_be_used_twice(randomize, x):
    model = build(randomize)
    twin = without_cache(model)
    for m in (model, twin):
        loss = m(x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
    assert_same_gradients(model, twin)


def test_no_grad_then_grad_and_back(randomize, x):
    model = build(randomize)
    with torch.no_grad():
        evaluated = model(x)
        alone = model[0](x)
    assert not alone.requires_grad
    y = model[0](x)
    assert y.requires_grad
    y.sum().backward()
    assert model[0].skew_r.grad is not None
    torch.testing.assert_close(model(x), evaluated, rtol=1e-13, atol=1e-13)
    with torch.inference_mode():
        model(x)
    model(x).sum().backward()


def test_gradients_switched_on_inside_a_forward_without(randomize, x):
    """Guidance and energy models do so: the batch of the outer forward has no graph to give."""

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8).double()

        def forward(self, x):
            with torch.enable_grad():
                (self.layer(x).square().sum()).backward()

    model = randomize(apply_poet(Inner(), CONFIG))
    with torch.no_grad():
        model(x)
    assert model.layer.skew_r.grad.any()


@pytest.mark.parametrize("context", ("grad", "no_grad"))
@pytest.mark.parametrize(
    "change",
    ("in place", "data", "load_state_dict", "merge", "set", "sgd", "adamw", "adamw fused", "adamw foreach"),
)
def test_factors_are_never_stale(randomize, x, change, context):
    model = build(randomize)
    model(x).square().sum().backward()  # gradients for the optimizers
    with torch.set_grad_enabled(context == "grad"):
        model(x)  # fills the batch anew
    with torch.no_grad():
        before = [skew.clone() for skew in poet_parameters(model)]
        if change == "in place":
            for skew in poet_parameters(model):
                skew.mul_(2)
        elif change == "data":
            for skew in poet_parameters(model):
                skew.data.mul_(2)
        elif change == "load_state_dict":
            model.load_state_dict({k: 2 * v if "skew" in k else v for k, v in model.state_dict().items()})
        elif change == "merge":
            merge_and_reinitialize(model)
        elif change == "set":
            for skew in poet_parameters(model):
                skew.data = 2 * skew.data
        elif change == "sgd":
            torch.optim.SGD(model.parameters(), lr=0.1).step()
        else:
            options = {change.split()[1]: True} if " " in change else {}
            torch.optim.AdamW(model.parameters(), lr=0.1, **options).step()
    assert all(not torch.equal(a, b) for a, b in zip(before, poet_parameters(model), strict=True))
    assert_fresh(model)


@pytest.mark.parametrize("fused", (False, True))
def test_a_trained_layer_alone_tracks_every_step(randomize, x, fused):
    """Evaluate, step, look at a weight: what a probe does."""
    model = build(randomize)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, fused=fused)
    weights = []
    for _ in range(3):
        model(x).square().sum().backward()
        with torch.no_grad():
            model(x)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            weights.append(model[0].effective_weight())
            torch.testing.assert_close(weights[-1], without_cache(model)[0].effective_weight())
    assert all(not torch.equal(a, b) for a, b in pairwise(weights))


def test_a_second_apply_takes_over_the_cache(randomize, x):
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).double()
    apply_poet(model, CONFIG, exclude=("1",))
    apply_poet(model, CONFIG)
    (cache,) = [hook.__self__ for hook in model._forward_pre_hooks.values() if hasattr(hook, "__self__")]
    assert cache.layers == [model[0], model[1]]
    assert all(layer._step_cache is cache for layer in model)
    model(x).sum().backward()
    assert all(skew.grad is not None for skew in poet_parameters(model))


class Checkpointed(nn.Module):
    """Three layers; which of them are checkpointed is chosen."""

    def __init__(self, which, reentrant):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.which, self.reentrant = which, reentrant

    def forward(self, x):
        for index, layer in enumerate(self.layers):
            if index in self.which:
                x = checkpoint(layer, x, use_reentrant=self.reentrant)
            else:
                x = layer(x)
            x = torch.tanh(x)
        return x


@pytest.mark.parametrize("reentrant", (True, False))
@pytest.mark.parametrize("which", ((0, 1, 2), (1,), (2,), (0, 2)), ids=str)
@pytest.mark.parametrize("forwards", (1, 2))
def test_activation_checkpointing_by_hand(randomize, which, reentrant, forwards):
    model = randomize(apply_poet(Checkpointed(which, reentrant).double(), CONFIG))
    twin = without_cache(model)
    twin.which = ()
    inputs = [torch.randn(5, 8, dtype=torch.float64, requires_grad=True) for _ in range(forwards)]
    for m in (model, twin):
        for loss in [m(x).square().sum() for x in inputs]:
            loss.backward()
    assert_same_gradients(model, twin)


@pytest.mark.parametrize("reentrant", (True, False))
def test_hugging_face_gradient_checkpointing(llama, tokens, randomize, reentrant):
    models = [
        randomize(apply_poet(llama().double(), CONFIG, generator=torch.Generator().manual_seed(0)))
        for _ in range(2)
    ]
    models[0].gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    for model in models:
        model.train()
        for part in tokens.split(2):
            model(input_ids=part, labels=part).loss.backward()
    assert_same_gradients(*models)


@pytest.fixture
def maps(monkeypatch):
    """Calls of the map in one forward direction, whoever makes them."""
    calls, original = [], poet.factors.orthogonal_factors
    monkeypatch.setattr(poet.factors, "orthogonal_factors", lambda *a: calls.append(a) or original(*a))
    return calls


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


def test_an_evaluation_amid_accumulation_changes_nothing(randomize):
    x = torch.randn(8, 8, dtype=torch.float64)
    model = build(randomize)
    twin = without_cache(model)
    for part in x.split(4):
        model(part).square().sum().backward()
        with torch.no_grad():
            torch.testing.assert_close(model(x), twin(x))
    twin(x).square().sum().backward()
    assert_same_gradients(model, twin)


def test_an_evaluation_before_a_checkpointed_backward(randomize):
    model = randomize(apply_poet(Checkpointed((0, 1, 2), reentrant=False).double(), CONFIG))
    twin = without_cache(model)
    twin.which = ()
    x = torch.randn(5, 8, dtype=torch.float64)
    for m in (model, twin):
        loss = m(x).square().sum()
        with torch.no_grad():
            m(x)
        loss.backward()
    assert_same_gradients(model, twin)


class RawWrites(torch.optim.Optimizer):
    """Writes through ``.data``, as optimizers outside of PyTorch do, and leaves no version."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data.sub_(parameter.grad, alpha=1e-3)


@pytest.mark.parametrize("set_to_none", (True, False))
def test_an_optimizer_that_leaves_no_trace_is_noticed(randomize, x, set_to_none):
    model = build(randomize)
    twin = without_cache(model)
    optimizers = [RawWrites(m.parameters()) for m in (model, twin)]
    for _ in range(3):
        for m, optimizer in zip((model, twin), optimizers, strict=True):
            optimizer.zero_grad(set_to_none=set_to_none)
            m(x).square().sum().backward()
            optimizer.step()
    assert_same_gradients(model, twin)


@pytest.mark.parametrize("change", ("in place", "replaced", "frozen", "base weight"))
def test_a_change_amid_accumulation_is_noticed(randomize, x, change):
    model = build(randomize)
    model(x).sum().backward()
    with torch.no_grad():
        if change == "in place":
            model[0].skew_r.mul_(2)
        elif change == "replaced":
            model[0].skew_r.data = 2 * model[0].skew_r
        elif change == "frozen":
            model[0].skew_r.requires_grad_(False)
        else:
            model[0].base_weight.mul_(2)
    twin = without_cache(model)
    for m in (model, twin):
        m.zero_grad(set_to_none=False)
        m(x).square().sum().backward()
    torch.testing.assert_close(model(x), twin(x))
    assert_same_gradients(model, twin)


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


@pytest.mark.parametrize("size", (8, 512), ids=("small", "large"))
def test_layers_of_both_sizes_agree_with_their_twins(randomize, size):
    """Small layers share a batch of weights; a large one builds its own."""
    config = POETConfig(block_size=size // 2, neumann_terms=3)
    model = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, size)).double()
    model = randomize(apply_poet(model, config, generator=torch.Generator().manual_seed(0)), scale=0.1 / size)
    twin = without_cache(model)
    x = torch.randn(3, size, dtype=torch.float64)
    for m in (model, twin):
        m(x).square().sum().backward()
    assert (model[0].base_weight.numel() > SMALL) is (size == 512)
    assert bool(model[0]._step_cache._kept.weights) is (size == 8)
    assert_same_gradients(model, twin)


def test_buffers_that_are_overwritten_without_a_trace_are_noticed(randomize, x):
    """Averages of models are kept like this."""
    model = build(randomize)
    average = copy.deepcopy(model)
    average(x).sum().backward()
    with torch.no_grad():
        merge_and_reinitialize(model, torch.Generator().manual_seed(7))
        for mine, theirs in zip(average.buffers(), model.buffers(), strict=True):
            mine.data.copy_(theirs.data)
    average.zero_grad()
    torch.testing.assert_close(average(x), without_cache(average)(x))


def test_other_parameters_for_one_call_of_a_part(randomize, x):
    """What meta-learning does: the batch of the outer forward pass is of other parameters."""

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(8, 8).double()

        def forward(self, x, parameters):
            return torch.func.functional_call(self.part, parameters, (x,))

    model = randomize(apply_poet(Outer(), CONFIG))
    parameters = {name: (2 * p.detach()).requires_grad_() for name, p in model.part.named_parameters()}
    twin = without_cache(model)
    y = model(x, parameters)
    torch.testing.assert_close(y, twin(x, parameters))
    y.sum().backward()
    assert parameters["skew_r"].grad.any() and model.part.skew_r.grad is None


def test_a_model_moved_in_inference_mode_still_runs(randomize, x):
    model = build(randomize).float()
    with torch.inference_mode():
        model.double()
    with torch.no_grad():
        torch.testing.assert_close(model(x), without_cache(model)(x))


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
    assert found["poet::block_transform"] and found["poet::cayley_neumann_pullback"]
    assert not [name for name in found if "index_put" in name or "scatter" in name]


def test_small_layers_share_their_calls(randomize, x):
    """As many operators of POET's for six layers as for two."""
    counts = []
    for depth in (2, 6):
        model = build(randomize, depth=depth)
        found = operators(lambda model=model: model(x).sum().backward())
        counts.append({name: times for name, times in found.items() if name.startswith("poet::")})
    assert counts[0] == counts[1] and counts[0]["poet::block_transform"] == 1
