"""What is shared is never stale, however parameters and buffers are changed."""

import copy
from itertools import pairwise

import pytest
import torch
from torch import nn

from poet import apply_poet, merge_and_reinitialize
from poet.optim import poet_parameters
from tests.step_cache.models import CONFIG, assert_fresh, assert_same_gradients, build, without_cache


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


def train_a_step(model, x):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
    optimizer.zero_grad()
    model(x).square().sum().backward()
    optimizer.step()


@pytest.mark.parametrize("how", ("set", "assign"))
def test_replaced_parameters_are_merged(randomize, x, how):
    """What was laid out before an optimizer's step is of the old ones."""
    model = build(randomize)
    train_a_step(model, x)
    new = {name: 3 * p.detach() for name, p in model.named_parameters()}
    if how == "set":
        for name, value in new.items():
            module, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(module), attribute, nn.Parameter(value))
    else:
        model.load_state_dict(new, strict=False, assign=True)
    for _ in range(2):
        with torch.no_grad():
            expected = without_cache(model)(x)
        merge_and_reinitialize(model)
        assert not any(skew.any() for skew in poet_parameters(model))
        torch.testing.assert_close(model(x), expected)
        torch.testing.assert_close(train_and_look(model, x), without_cache(model)(x))


def train_and_look(model, x):
    train_a_step(model, x)
    return model(x)


def test_other_processes_may_write_to_buffers(randomize, x, monkeypatch):
    """DistributedDataParallel's broadcast leaves no trace on a tensor; neither does ``.data``, which stands in for it."""
    monkeypatch.setattr("poet.step_cache.dist.is_initialized", lambda: True)
    monkeypatch.setattr("poet.step_cache.dist.get_world_size", lambda: 2)
    model = build(randomize)
    train_a_step(model, x)
    for layer in model:
        layer.base_weight.data.mul_(2)
    torch.testing.assert_close(model(x), without_cache(model)(x))


def test_what_is_laid_out_goes_when_a_model_moves(randomize, x):
    model = build(randomize)
    train_a_step(model, x)
    assert model[0]._step_cache.tensors()
    model.float()
    assert not model[0]._step_cache.tensors()
    train_a_step(model, x.float())
    torch.testing.assert_close(model(x.float()), without_cache(model)(x.float()))


def test_a_layout_is_kept_over_the_steps_of_its_own_optimizers(randomize, x):
    """Of two that share the parameters, too; not over another model's, and not over a merge's old one."""
    model, other = build(randomize), build(randomize)
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.01) for layer in model]
    model(x).sum().backward()
    first = model[0]._step_cache._small
    for optimizer in optimizers:
        optimizer.step()
    model(x).sum().backward()
    assert model[0]._step_cache._small is first
    train_a_step(other, x)
    model(x)
    assert model[0]._step_cache._small is not first
    train_a_step(model, x)
    before = model[0]._step_cache._small
    merge_and_reinitialize(model)
    after = model[0]._step_cache._small
    model(x)
    assert before is not after and model[0]._step_cache._small is after


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
