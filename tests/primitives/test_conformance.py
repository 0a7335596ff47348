"""What every primitive promises, one by one and in a layer. Those of ``poet.primitives``, and one more."""

import copy

import pytest
import torch
from torch import nn

from poet import POETConfig, apply_poet, export_dense, merge_and_reinitialize
from poet.primitives import VARIANTS
from tests.primitives import givens

OPTIONS = {
    "bs": ({"block_size": 3}, {"block_size": 3, "block_size_p": 0}),
    "fs": ({"budget": 0.5}, {"budget": 0.5, "budget_r": 0}),
    "givens": ({},),
}
CASES = [(variant, options) for variant, several in OPTIONS.items() for options in several]
#: Options that leave R, and P, the identity.
IDENTITY = ({"budget_r": 0}, {"block_size_p": 0})
#: The sides of each case that are trained: 0 is R, 1 is P.
SIDES = [(*case, side) for case in CASES for side in (0, 1) if not IDENTITY[side].items() <= case[1].items()]
IN, OUT = 12, 9


@pytest.fixture(autouse=True)
def _one_row(monkeypatch):
    """All that it takes."""
    monkeypatch.setitem(VARIANTS, "givens", givens.VARIANT)


def test_every_variant_is_tested():
    assert set(OPTIONS) == set(VARIANTS)


@pytest.fixture(params=CASES, ids=str)
def config(request):
    variant, options = request.param
    return POETConfig(variant=variant, **options, merge="exact", init="standard")


@pytest.fixture(params=SIDES, ids=str)
def primitive(request):
    variant, options, side = request.param
    found = POETConfig(variant=variant, **options).primitives(IN, OUT)[side]
    assert found.parameters
    return found


def drawn(primitive, scale=0.3):
    return scale * torch.randn(primitive.shape, dtype=torch.float64)


def test_a_sample_is_a_permutation_with_what_stays_in_order(primitive):
    permutation = primitive.sample(torch.Generator().manual_seed(1))
    assert permutation.dtype == torch.int64
    assert sorted(permutation.tolist()) == list(range(primitive.dimension))
    rest = permutation[primitive.covered :].tolist()
    assert rest == sorted(rest)
    assert torch.equal(permutation, primitive.sample(torch.Generator().manual_seed(1)))


def test_it_is_orthogonal_and_zero_is_the_identity(primitive):
    identity = torch.eye(primitive.dimension, dtype=torch.float64)
    dense = primitive.apply(primitive.factors(drawn(primitive), None), identity)
    torch.testing.assert_close(dense @ dense.T, identity)
    torch.testing.assert_close(torch.linalg.det(dense), torch.ones((), dtype=torch.float64))
    assert not torch.allclose(dense, identity)
    torch.testing.assert_close(dense[primitive.covered :], identity[primitive.covered :])
    torch.testing.assert_close(primitive.apply(primitive.factors(0 * drawn(primitive), None), identity), identity)


def test_the_transpose_is_the_transpose(primitive):
    factors, x = primitive.factors(drawn(primitive), 3), torch.randn(5, primitive.dimension, dtype=torch.float64).T
    dense = primitive.apply(factors, torch.eye(primitive.dimension, dtype=torch.float64))
    before = x.clone()
    torch.testing.assert_close(primitive.apply(factors, x), dense @ x)
    torch.testing.assert_close(primitive.apply(factors, x, transpose=True), dense.T @ x)
    assert torch.equal(x, before)


@pytest.mark.parametrize("transpose", (False, True))
@pytest.mark.parametrize("terms", (3, None))
def test_the_derivatives_are_those_of_autograd(primitive, terms, transpose):
    packed = drawn(primitive).requires_grad_()
    x, grad = (torch.randn(5, primitive.dimension, dtype=torch.float64).T for _ in range(2))
    factors = primitive.factors(packed, terms)
    by_factors, by_packed = torch.autograd.grad(primitive.apply(factors, x, transpose=transpose), (factors, packed), grad)
    with torch.no_grad():
        covered = primitive.covered
        for given in ((x, grad), (x[:covered], grad[:covered])):
            torch.testing.assert_close(primitive.apply_vjp(factors, *given, transpose=transpose), by_factors)
        torch.testing.assert_close(primitive.factors_vjp(packed, by_factors, terms), by_packed)


def model_of(config, randomize):
    plain = nn.Sequential(nn.Linear(IN, OUT), nn.Tanh(), nn.Linear(OUT, IN, bias=False)).double()
    return randomize(apply_poet(plain, config, generator=torch.Generator().manual_seed(0)), scale=0.3)


def test_a_layer_has_the_paper_s_weight_and_gradients(config, randomize, reference):
    model, x = model_of(config, randomize), torch.randn(5, IN, dtype=torch.float64, requires_grad=True)
    layer = model[0]
    r, p = layer.rotations()
    torch.testing.assert_close(layer.effective_weight().T, r @ reference.base(layer) @ p)
    torch.testing.assert_close(layer(x), x @ layer.effective_weight().T + layer.bias)
    names = [name for name, q in layer.named_parameters() if q.requires_grad]
    trained = [layer.get_parameter(name) for name in names]

    def function(x, *parameters):
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(function, (x, *trained))


def test_a_model_trains_merges_copies_and_exports(config, randomize):
    model, x = model_of(config, randomize), torch.randn(5, IN, dtype=torch.float64)
    trained = [q for q in model.parameters() if q.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=0.01)
    losses, spectrum = [], torch.linalg.svdvals(model[0].base_weight)
    for step in range(20):
        loss = (model(x) - x).square().mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 9:
            merge_and_reinitialize(model, torch.Generator().manual_seed(step))
            torch.testing.assert_close(torch.linalg.svdvals(model[0].weight), spectrum)
    assert losses[-1] < losses[0]
    twin = model_of(config, randomize)
    twin.load_state_dict(model.state_dict())
    expected = model(x)
    assert torch.equal(twin(x), expected) and torch.equal(copy.deepcopy(model)(x), expected)
    torch.testing.assert_close(export_dense(model)(x), expected)
