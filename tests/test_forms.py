"""Both forms of the layer against the dense product, what each of them costs and keeps, and which one is taken."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

import poet.kernels.counting  # registers what FlopCounterMode counts
from poet import POETConfig, POETLinear, apply_poet, forms

CONFIGS = {
    "bs": POETConfig(block_size=4),
    "fs": POETConfig(variant="fs", budget=0.5),
    "r alone": POETConfig(block_size=4, block_size_p=0),
    "p alone": POETConfig(block_size=4, block_size_r=0),
    "neither": POETConfig(block_size=0),
}
FORMS = {"weight": forms._WeightForm, "activations": forms._ActivationForm}


@pytest.fixture(params=CONFIGS)
def layer(request, randomize):
    generator = torch.Generator().manual_seed(0)
    return randomize(POETLinear(12, 8, CONFIGS[request.param], generator=generator, dtype=torch.float64))


def call(form, layer, x):
    return FORMS[form].apply(x, layer.base_weight, *layer.factors(), *layer.orders())


def shapes(layer):
    return layer.base_weight.shape, *(None if g is None else g.shape for g in layer.factors())


@pytest.mark.parametrize("shape", ((12,), (5, 12), (2, 3, 12), (0, 12)), ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_output_and_gradients_are_those_of_the_dense_product(form, layer, shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    leaves = [x, *(skew for skew in (layer.skew_r, layer.skew_p) if skew is not None)]
    weights = torch.randn(*shape[:-1], 8, dtype=torch.float64)
    y, expected = call(form, layer, x), x @ layer.effective_weight().mT
    torch.testing.assert_close(y, expected)
    found = torch.autograd.grad((y * weights).sum(), leaves)
    torch.testing.assert_close(found, torch.autograd.grad((expected * weights).sum(), leaves), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("trained", (("x",), ("r",), ("p",), ("r", "p"), ("x", "r"), ("x", "p")), ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_frozen_changes_no_other_gradient(form, trained, layer):
    """The first layer's input, factors that a user froze: each takes a way of its own through backward."""
    g_r, g_p = (None if g is None else g.detach() for g in layer.factors())
    given = {"x": torch.randn(5, 12, dtype=torch.float64), "r": g_r, "p": g_p}
    weights = torch.randn(5, 8, dtype=torch.float64)

    def gradients(names):
        leaves = {name: tensor.clone().requires_grad_(name in names) for name, tensor in given.items() if tensor is not None}
        y = FORMS[form].apply(leaves["x"], layer.base_weight, leaves.get("r"), leaves.get("p"), *layer.orders())
        if y.requires_grad:
            (y * weights).sum().backward()
        return {name: leaf.grad for name, leaf in leaves.items()}

    found, every = gradients(trained), gradients(given)
    for name, expected in every.items():
        if name in trained:
            torch.testing.assert_close(found[name], expected, rtol=1e-12, atol=1e-12)
        else:
            assert found[name] is None


@pytest.mark.parametrize("training", (True, False))
@pytest.mark.parametrize("form", FORMS)
def test_the_count_is_what_is_computed(form, layer, training):
    count = {"weight": forms.weight_form_operations, "activations": forms.activation_form_operations}[form]
    x = torch.randn(5, 12, dtype=torch.float64, requires_grad=True)
    g_r, g_p = (None if g is None else g.detach().requires_grad_() for g in layer.factors())
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(training):
        y = FORMS[form].apply(x, layer.base_weight, g_r, g_p, *layer.orders())
        if training:
            y.sum().backward()
    expected = count(5, *shapes(layer), training=training)
    if training and form == "weight" and g_r is None and g_p is None:
        expected -= 2 * 5 * 12 * 8  # nothing is trained: no gradient of the weight
    assert counter.get_total_flops() == expected


def test_the_cheaper_form_is_taken():
    weight, blocks = (4096, 4096), (16, 256, 256)
    for tokens, training, activations in (
        (1, False, True),
        (4096, False, False),
        (256, True, True),
        (4096, True, True),  # cheaper, and what is kept is as large as the weight
        (4097, True, False),  # cheaper still, but it would keep more than the weight's size
    ):
        found = forms.prefers_activations(tokens, weight, blocks, blocks, training=training)
        assert found is activations, (tokens, training)
        counts = [
            count(tokens, weight, blocks, blocks, training=training)
            for count in (forms.activation_form_operations, forms.weight_form_operations)
        ]
        assert (counts[0] < counts[1]) is (activations or tokens == 4097)


@pytest.mark.parametrize(("tokens", "form"), ((2, "_ActivationForm"), (40, "_WeightForm")))
def test_the_layer_asks_the_count(tokens, form, layer, monkeypatch):
    taken = []
    for name in ("_ActivationForm", "_WeightForm"):
        monkeypatch.setattr(getattr(forms, name), "apply", lambda *a, name=name: taken.append(name) or a[0])
    layer(torch.randn(tokens, 12, dtype=torch.float64))
    if layer.skew_r is None and layer.skew_p is None:  # nothing to rotate: the forms cost the same, and one is taken
        assert len(taken) == 1
    else:
        assert taken == [form]


def test_the_activation_form_keeps_no_weight(layer):
    saved = []
    with saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        call("activations", layer, torch.randn(5, 12, dtype=torch.float64))
    large = [t for t in saved if t.numel() >= 12 * 8]
    assert {t.data_ptr() for t in large} <= {layer.base_weight.data_ptr()}
    assert max((t.numel() for t in saved if t.data_ptr() != layer.base_weight.data_ptr()), default=0) <= 5 * 12


@pytest.mark.parametrize("form", FORMS)
def test_autocast_computes_and_returns_bf16(form, layer):
    layer = layer.float()
    x = torch.randn(5, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = call(form, layer, x.bfloat16())
    assert y.dtype == torch.bfloat16
    # Entries of size about 3; a few roundings of 2^-9 each.
    torch.testing.assert_close(y.float(), x @ layer.effective_weight().detach().mT, rtol=0, atol=0.1)


@pytest.mark.parametrize("name", (*CONFIGS, "exact"))
@pytest.mark.parametrize("tokens", (2, 40))
def test_a_compiled_model_is_one_graph(name, tokens, randomize):
    torch._dynamo.reset()
    config = CONFIGS.get(name, POETConfig(block_size=4, neumann_terms=None))
    model = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Tanh(), torch.nn.Linear(12, 8)).double()
    model = randomize(apply_poet(model, config, generator=torch.Generator().manual_seed(0)))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    results = []
    for function in (model, compiled):
        x = torch.randn(tokens, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
        y = function(x)
        y.square().sum().backward()
        results.append([y, x.grad, *(p.grad for p in model.parameters())])
        model.zero_grad()
    torch.testing.assert_close(*results)
