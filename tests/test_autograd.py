"""Whatever else autograd and torch.compile do with a POET model: the gradients are those of the plain, eager layer."""

import copy
import functools

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
    """A layer that multiplies with R W P as the paper defines them, by autograd alone."""

    def __init__(self, layer, reference):
        super().__init__()
        self.layer, self.reference = layer, reference

    def forward(self, x):
        r, w, p = self.reference.dense(self.layer, self.layer.skew_r, self.layer.skew_p)
        return functional.linear(x, (r @ w @ p).T, self.layer.bias)


def build(randomize, config=CONFIGS["bs"]):
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)).double()
    return randomize(apply_poet(model, config, generator=torch.Generator().manual_seed(0)))


@pytest.fixture
def plain(reference):
    """``plain(model)`` is a copy of the model whose layers are :class:`Dense`."""
    return functools.partial(_plain, reference)


def _plain(reference, model):
    twin = copy.deepcopy(model)
    for index, layer in enumerate(twin):
        if isinstance(layer, POETLinear):
            twin[index] = Dense(layer, reference)
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
def test_compiled_to_one_graph(randomize, plain, x, name):
    model = build(randomize, CONFIGS[name])
    twin = plain(model)
    y = torch.compile(model, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(y, twin(x))
    y.square().sum().backward()
    twin(x).square().sum().backward()
    check(model, twin)


def checkpointed(model, x, reentrant):
    for start in (0, 2, 4):
        x = checkpoint(model[start : start + 2], x, use_reentrant=reentrant)
    x.square().sum().backward()


def in_micro_batches(model, x):
    for part in x.split(2):
        model(part).square().sum().backward()
        with torch.no_grad():
            model(x)  # an evaluation in between changes nothing


def two_at_once(model, x, order):
    losses = [model(x).sum(), model(2 * x).square().sum()]
    for index in order:
        losses[index].backward()


def twice_through_one_graph(model, x):
    loss = model(x).square().sum()
    loss.backward(retain_graph=True)
    loss.backward()


WAYS = {
    "checkpointed, reentrant": functools.partial(checkpointed, reentrant=True),
    "checkpointed": functools.partial(checkpointed, reentrant=False),
    "in micro-batches": in_micro_batches,
    "two forwards, the first back first": functools.partial(two_at_once, order=(0, 1)),
    "two forwards, the last back first": functools.partial(two_at_once, order=(1, 0)),
    "twice through one graph": twice_through_one_graph,
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_through_autograd(randomize, plain, x, way):
    model = build(randomize)
    twin = plain(model)
    for each in (model, twin):
        WAYS[way](each, x.requires_grad_())
    check(model, twin)


def test_a_second_derivative_is_refused(randomize, x):
    model = build(randomize)
    (grad,) = torch.autograd.grad(model(x).square().sum(), model[0].skew_r, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize("loss", (torch.sum, lambda y: y.square().sum()), ids=("linear", "square"))
@pytest.mark.parametrize("of", ("x", "skew_r"))
def test_a_penalty_on_a_gradient_is_refused_by_backward(randomize, x, of, loss):
    """Of a loss that is linear in a layer's output the gradient that comes in is a constant, and the one that goes out is not."""
    layer = build(randomize)[4]
    h = torch.randn(5, 16, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(loss(layer(h)), h if of == "x" else layer.skew_r, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        (loss(layer(h)) + grad.square().sum()).backward()
    (grad,) = torch.autograd.grad(loss(layer.weight), layer.skew_r, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.square().sum().backward()


@pytest.mark.parametrize("transform", (lambda model, x: torch.vmap(model)(x), lambda model, x: torch.func.jvp(model, (x,), (x,))))
def test_transforms_of_torch_func_are_refused(randomize, x, transform):
    with pytest.raises(RuntimeError, match="setup_context"):
        transform(build(randomize), x)
