"""Whatever else autograd and torch.compile do with a POET model: the gradients are those of the plain, eager layer."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from poet import POETConfig, POETLinear, apply_poet

CONFIGS = {
    "bs": POETConfig(block_size=4),
    "fs": POETConfig(variant="fs", budget_r=0.5, budget_p=0.75),
    "exact": POETConfig(block_size_r=2, block_size_p=4, neumann_terms=None),
    "one side": POETConfig(block_size=4, block_size_p=0),
}


class Dense(nn.Module):
    """A layer that multiplies with its dense effective weight, by autograd alone."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return functional.linear(x, self.layer.effective_weight(), self.layer.bias)


def build(randomize, config=CONFIGS["bs"]):
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)).double()
    return randomize(apply_poet(model, config, generator=torch.Generator().manual_seed(0)))


def plain(model):
    """A copy of the model whose layers are :class:`Dense`."""
    twin = copy.deepcopy(model)
    for index, layer in enumerate(twin):
        if isinstance(layer, POETLinear):
            twin[index] = Dense(layer)
    return twin


def gradients(model):
    return [p.grad for p in model.parameters() if p.requires_grad]


def check(model, twin, **tolerance):
    found, expected = gradients(model), gradients(twin)
    assert found and all(g is not None and g.any() for g in expected)
    torch.testing.assert_close(found, expected, **(tolerance or {"rtol": 1e-11, "atol": 1e-12}))


@pytest.fixture
def x():
    return torch.randn(5, 8, dtype=torch.float64)


@pytest.mark.parametrize("name", CONFIGS)
def test_compiled_to_one_graph(randomize, x, name):
    model = build(randomize, CONFIGS[name])
    twin = plain(model)
    y = torch.compile(model, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(y, twin(x))
    y.square().sum().backward()
    twin(x).square().sum().backward()
    check(model, twin)


@pytest.mark.parametrize("reentrant", (True, False))
def test_activation_checkpointing(randomize, x, reentrant):
    model = build(randomize)
    twin = plain(model)
    x = x.requires_grad_()
    hidden = x
    for start in (0, 2):
        hidden = checkpoint(model[start : start + 2], hidden, use_reentrant=reentrant)
    model[4](hidden).square().sum().backward()
    twin(x).square().sum().backward()
    check(model, twin)


def test_accumulated_micro_batches_equal_one_batch(randomize):
    model, x = build(randomize), torch.randn(8, 8, dtype=torch.float64)
    twin = plain(model)
    for part in x.split(2):
        model(part).square().sum().backward()
        with torch.no_grad():
            model(x)  # an evaluation in between changes nothing
    twin(x).square().sum().backward()
    check(model, twin)


@pytest.mark.parametrize("order", ((0, 1), (1, 0)))
def test_two_forwards_then_two_backwards(randomize, x, order):
    model = build(randomize)
    twin = plain(model)
    for m in (model, twin):
        losses = [m(x).sum(), m(2 * x).square().sum()]
        for index in order:
            losses[index].backward()
    check(model, twin)


def test_retained_graphs_can_be_used_twice(randomize, x):
    model = build(randomize)
    twin = plain(model)
    for m in (model, twin):
        loss = m(x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
    check(model, twin)


def test_a_second_derivative_is_refused(randomize, x):
    model = build(randomize)
    (grad,) = torch.autograd.grad(model(x).square().sum(), model[0].skew_r, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()
