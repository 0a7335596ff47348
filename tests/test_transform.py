"""The two-sided transform, its derivative and the layer built on it, against dense block-diagonal products and autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd.graph import saved_tensors_hooks

from benchmarks.memory import peak_bytes
from poet import POETConfig, POETLinear
from poet.primitives import BlockPrimitive
from poet.transform import Side, transform, transform_vjp

# (n, m, (k_r, b_r), (k_p, b_p)); None is an identity side.
CASES = (
    (12, 20, (5, 4), (3, 4)),
    (12, 20, (1, 7), (1, 5)),
    (9, 15, (5, 3), (1, 4)),
    (7, 11, (2, 5), (3, 2)),
    (7, 11, None, (1, 7)),
    (7, 11, (1, 11), None),
    (7, 11, None, None),
    (33, 17, (1, 1), (11, 3)),
)


def random_case(n, m, side_r, side_p, seed=0):
    """(base, R, P, grad), fp64, with blocks that are any matrices."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def side(size, shape):
        if shape is None:
            return Side(BlockPrimitive(size, 0, 0), None, torch.arange(size))
        (k, b), permutation = shape, torch.randperm(size, generator=generator)
        return Side(BlockPrimitive(size, b, k), draw(k, b, b), permutation)

    return draw(n, m), side(m, side_r), side(n, side_p), draw(n, m)


def expected_transform(base, r, p):
    """Equation (3), and each entry put where it belongs by hand."""
    dense = []
    for side in (r, p):
        m, blocks = side.primitive.dimension, [] if side.factors is None else side.factors
        dense.append(torch.block_diag(*blocks, torch.eye(m - side.primitive.covered, dtype=torch.float64)))
    placed = torch.empty_like(base)
    placed[p.permutation[:, None], r.permutation[None, :]] = dense[1].T @ base @ dense[0].T
    return placed


def check(base, r, p, grad):
    original = base.clone()
    leaves = [side.factors.requires_grad_() for side in (r, p) if side.factors is not None]
    expected = expected_transform(base, r, p)
    gradients = torch.autograd.grad(expected, leaves, grad) if leaves else ()
    with torch.no_grad():
        torch.testing.assert_close(transform(base, r, p), expected, rtol=1e-12, atol=1e-12)
        can = tuple(side.factors is not None for side in (r, p))
        for wanted in {can, (can[0], False), (False, can[1]), (False, False)}:
            for build in (True, False):
                found, weight = transform_vjp(base, r, p, grad, wanted, build)
                assert [f is not None for f in found] == list(wanted)
                exact = iter(gradients)
                exact = [next(exact) if one else None for one in can]
                for ours, theirs, needed in zip(found, exact, wanted, strict=True):
                    if needed:
                        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)
                assert (weight is not None) == build
                if build:
                    torch.testing.assert_close(weight, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(base, original)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_transform_and_derivative_equal_dense_products(case):
    check(*random_case(*case))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_transform_and_derivative_for_any_shape_and_budget(drawn):
    n, m, seed = (drawn.draw(st.integers(*limits)) for limits in ((1, 17), (1, 17), (0, 99)))

    def side(size):
        if drawn.draw(st.booleans()):
            return None
        b = drawn.draw(st.integers(1, size))
        return drawn.draw(st.integers(1, size // b)), b

    check(*random_case(n, m, side(m), side(n), seed))


@pytest.mark.parametrize(("dtype", "bound"), ((torch.float32, 1e-6), (torch.bfloat16, 4e-3), (torch.float16, 5e-4)))
def test_half_precision_is_rounded_once(dtype, bound):
    """Bounds: the unit roundoff, 2^-9 and 2^-12 times sqrt(1/3) to sqrt(4), of the results; gradients stay in fp32."""
    base, r, p, grad = random_case(48, 64, (4, 16), (3, 16))
    r, p = (side._replace(factors=torch.linalg.qr(side.factors).Q) for side in (r, p))
    low = base.to(dtype), r.to(dtype), p.to(dtype), grad.to(dtype)
    exact = [t.to(torch.float64) for t in low]
    found, expected = transform(*low[:3]), transform(*exact[:3])
    assert found.dtype == dtype
    assert (found - expected).norm() / expected.norm() < bound
    pulled, _ = transform_vjp(*low, (True, True), False)
    for ours, theirs in zip(pulled, transform_vjp(*exact, (True, True), False)[0], strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() / theirs.norm() < 1e-6


CONFIGS = {
    "bs": POETConfig(block_size=4),
    "fs": POETConfig(variant="fs", budget=0.5),
    "r alone": POETConfig(block_size=4, block_size_p=0),
    "p alone": POETConfig(block_size=4, block_size_r=0),
    "neither": POETConfig(block_size=0),
}


@pytest.fixture(params=CONFIGS)
def layer(request, randomize):
    generator = torch.Generator().manual_seed(0)
    return randomize(POETLinear(12, 8, CONFIGS[request.param], generator=generator, dtype=torch.float64))


@pytest.mark.parametrize("trained", (("x",), ("skew_r",), ("skew_p",), ("skew_r", "skew_p"), ("x", "skew_r"), ("x", "skew_p")), ids=str)
def test_what_is_frozen_changes_no_other_gradient(trained, layer):
    """The first layer's input, factors that a user froze: each takes a way of its own through backward."""
    x, weights = torch.randn(5, 12, dtype=torch.float64), torch.randn(5, 8, dtype=torch.float64)

    def gradients(names):
        leaves = {"x": x.clone(), "skew_r": layer.skew_r, "skew_p": layer.skew_p}
        leaves = {name: leaf for name, leaf in leaves.items() if leaf is not None}
        for name, leaf in leaves.items():
            leaf.grad = None
            leaf.requires_grad_(name in names)
        y = layer(leaves["x"])
        if y.requires_grad:
            (y * weights).sum().backward()
        return {name: leaf.grad for name, leaf in leaves.items()}

    all_of_them, some = gradients(("x", "skew_r", "skew_p")), gradients(trained)
    for name, gradient in some.items():
        assert (gradient is not None) == (name in trained)
        if gradient is not None:
            torch.testing.assert_close(gradient, all_of_them[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ("bs", "fs"))
def test_nothing_of_the_weight_s_size_is_saved_but_the_weight(name, randomize):
    layer, saved = randomize(POETLinear(12, 8, CONFIGS[name], dtype=torch.float64)), []
    with saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        layer(torch.randn(40, 12, dtype=torch.float64))
    large = [t for t in saved if t.numel() == 12 * 8]
    assert [t.data_ptr() for t in large] == [layer.base_weight.data_ptr()]
    # What else is saved: the input (40 x 12), parameters, permutations and the small factors.
    assert all(t.numel() <= max(40 * 12, *(f.numel() for f in layer.factors())) for t in saved)


@pytest.mark.parametrize("variant", ({"block_size": 64}, {"variant": "fs", "budget": 1 / 8}), ids=("bs", "fs"))
def test_a_layer_more_keeps_no_weight(variant, randomize):
    """Forward and backward of large layers: from one to the other a layer keeps its output and its factors alone."""
    size, tokens = 1024, 1100
    activations, weight = 4 * tokens * size, 4 * size * size

    def peak(depth):
        config = POETConfig(**variant)
        layers = [POETLinear(size, size, config, generator=torch.Generator().manual_seed(i)) for i in range(depth)]
        model = randomize(torch.nn.Sequential(*layers), scale=1e-3)
        x = torch.randn(tokens, size, requires_grad=True)
        model(x).sum().backward()  # index tables and gradients are there
        return peak_bytes(lambda: model(x).sum().backward()), sum(4 * f.numel() for f in model[0].factors())

    (shallow, factors), (deep, _) = peak(2), peak(4)
    assert deep - shallow < 2 * (activations + 1.1 * factors) + 0.1 * weight


@pytest.mark.parametrize("what", ("skew_r", "skew_p", "base_weight", "permutation_in"))
def test_a_write_between_forward_and_backward_is_refused(what):
    layer = POETLinear(12, 8, CONFIGS["bs"], dtype=torch.float64)
    loss = layer(torch.randn(5, 12, dtype=torch.float64)).square().sum()
    with torch.no_grad():
        getattr(layer, what).add_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        loss.backward()


def test_what_is_read_is_what_is_there(randomize):
    """Writes that leave no trace, as ``.data`` and some optimizers make them."""
    layer, x = randomize(POETLinear(12, 8, CONFIGS["bs"], dtype=torch.float64)), torch.randn(5, 12, dtype=torch.float64)
    for tensor in (layer.skew_r, layer.skew_p, layer.base_weight):
        before = layer(x)
        tensor.data.add_(0.1)
        assert not torch.allclose(layer(x), before)
        torch.testing.assert_close(layer(x), x @ layer.effective_weight().T)
