"""The model-wide batch changes nothing of what autograd allows."""

import pytest
import torch
from torch import nn

from poet import POETConfig, apply_poet
from poet.batching import SMALL
from tests.step_cache.models import CONFIG, Checkpointed, assert_same_gradients, build, without_cache


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


@pytest.mark.parametrize("terms", (0, 1, 2, 3, None))
@pytest.mark.parametrize("moved", ((), ("0.skew_r",), ("1.skew_p", "2.skew_p")), ids=("none", "one", "a side of two"))
def test_factors_that_are_the_identity_have_gradients(x, terms, moved):
    """After a merge nothing is multiplied, unless somebody moved a single parameter of a batch."""
    config = POETConfig(variant="fs", budget_r=0.5, budget_p=0.75, neumann_terms=terms)
    model = build(lambda model: model, config=config)
    with torch.no_grad():
        for name in moved:
            model.get_parameter(name)[:, -1] = 0.1  # not the first number of a block
    twin = without_cache(model)
    torch.testing.assert_close(model(x), twin(x), rtol=1e-13, atol=1e-13)
    model(x).square().sum().backward()
    twin(x).square().sum().backward()
    assert all(p.grad.any() for p in model.parameters() if p.requires_grad)
    assert_same_gradients(model, twin)


def test_frozen_layers_ask_for_no_gradient(randomize, x):
    """One node for all must not give what is below a trained layer a graph."""
    model = build(randomize)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("1."))
    inputs = []
    model[1].register_forward_pre_hook(lambda _, args: inputs.append(args[0].requires_grad))
    twin = without_cache(model)
    for m in (model, twin):
        m(x).square().sum().backward()
    assert inputs == [False, False]
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


@pytest.mark.parametrize("size", (8, 512), ids=("small", "large"))
@pytest.mark.parametrize(
    ("what", "said"), (("skew_r", "a packed skew matrix"), ("base_weight", "modified by an inplace|a base weight"))
)
def test_a_write_between_forward_and_backward_is_refused(what, said, size):
    model = nn.Sequential(nn.Linear(size, size), nn.Linear(size, size)).double()
    apply_poet(model, POETConfig(block_size=4))
    loss = model(torch.randn(5, size, dtype=torch.float64)).square().sum()
    with torch.no_grad():
        getattr(model[1], what).add_(0.1)
    with pytest.raises(RuntimeError, match=said):
        loss.backward()
