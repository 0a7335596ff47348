"""POETLinear against y = (R W P)^T x built from the definitions, in fp64."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from poet import POETConfig, POETLinear
from poet import orthogonal
from poet.orthogonal import orthogonality_error

BS = {"variant": "bs", "block_size": 3}
FS = {"variant": "fs", "budget": 0.5}
# (in, out, config): both variants, one side or both switched off, separate sides, odd shapes.
LAYERS = (
    (12, 9, BS),
    (9, 15, {"variant": "bs", "block_size_r": 3, "block_size_p": 5}),
    (12, 9, {**BS, "block_size_p": 0}),
    (12, 9, {**BS, "block_size_r": 0}),
    (12, 10, FS),
    (11, 7, {"variant": "fs", "budget": 0.6}),
    (11, 7, {"variant": "fs", "budget_r": 0.3, "budget_p": 1.0}),
    (11, 7, {**FS, "budget_p": 0}),
    (11, 7, {**FS, "budget_r": 0}),
    (12, 9, {"variant": "bs", "block_size": 0}),
)


def build(m, n, options, *, seed=0, bias=True, **more):
    generator = torch.Generator().manual_seed(seed)
    config = POETConfig(**{**options, **more})
    return POETLinear(m, n, config, bias=bias, generator=generator, dtype=torch.float64)


def trained(layer):
    return {name: parameter for name, parameter in layer.named_parameters() if parameter.requires_grad}


@pytest.mark.parametrize("terms", (0, 1, 2, 3, 5, None))
@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_output_and_all_gradients_equal_the_paper_s_forward(case, terms, reference, randomize):
    layer = randomize(build(*case, neumann_terms=terms), 0.3)
    x = torch.randn(2, 5, case[0], dtype=torch.float64, requires_grad=True)
    grad_y = torch.randn(2, 5, case[1], dtype=torch.float64)
    leaves = {"x": x, **trained(layer)}
    r, w, p = reference.dense(layer, layer.skew_r, layer.skew_p)
    # Paper: y = (R W P)^T x for a column x; rows here.
    expected = x @ (r @ w @ p) + layer.bias
    y = layer(x)
    torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    wanted = torch.autograd.grad(expected, list(leaves.values()), grad_y)
    found = torch.autograd.grad(y, list(leaves.values()), grad_y)
    for name, a, b in zip(leaves, found, wanted, strict=True):
        torch.testing.assert_close(
            a, b, rtol=1e-10, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}"
        )
    dense_r, dense_p = layer.rotations()
    torch.testing.assert_close(dense_r, r, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(dense_p, p, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(layer.effective_weight().T, r @ w @ p, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_starts_as_the_dense_layer_of_its_base_weight(case, reference):
    layer = build(*case)
    assert all(not skew.any() for skew in (layer.skew_r, layer.skew_p) if skew is not None)
    base = reference.base(layer).T
    # Normalized in fp32.
    torch.testing.assert_close(base.norm(dim=1), torch.ones(case[1]).double(), rtol=0, atol=1e-6)
    x = torch.randn(4, case[0], dtype=torch.float64)
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, base), rtol=1e-13, atol=1e-13)


def test_keep_starts_from_the_given_weight(reference):
    weight = torch.randn(9, 12, dtype=torch.float64)
    config = POETConfig(**BS, init="keep")
    layer = POETLinear(12, 9, config, weight=weight, dtype=torch.float64)
    assert torch.equal(reference.base(layer).T, weight)
    assert torch.equal(layer.effective_weight(), weight)
    with pytest.raises(ValueError, match="needs the weight to keep"):
        POETLinear(12, 9, config)


def test_fp64_stays_fp64_under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert build(12, 9, BS)(torch.ones(2, 12, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize("bias", (True, False))
@pytest.mark.parametrize("rows", ((), (0,), (1,), (2, 3, 4)), ids=str)
@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_every_input_shape_that_nn_linear_takes(case, rows, bias, randomize):
    layer = randomize(build(*case, bias=bias))
    x = torch.randn(*rows, case[0], dtype=torch.float64, requires_grad=True)
    y, expected = layer(x), torch.nn.functional.linear(x, layer.effective_weight(), layer.bias)
    torch.testing.assert_close(y, expected)
    dense = layer.to_linear()
    torch.testing.assert_close(dense(x), expected)
    assert not bias or dense.bias.data_ptr() != layer.bias.data_ptr()
    assert y.shape == (*rows, case[1])
    leaves, weights = [x, *trained(layer).values()], torch.randn(*rows, case[1], dtype=torch.float64)
    found, wanted = (torch.autograd.grad((output * weights).sum(), leaves) for output in (y, expected))
    torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("variant", (BS, FS), ids=("bs", "fs"))
@pytest.mark.parametrize("merge", ("neumann", "exact"))
def test_merge_keeps_the_function_and_starts_again(variant, merge, randomize):
    # 40 terms at this scale: the Neumann remainder is far below rounding, so both merges are exact.
    layer = randomize(build(12, 9, variant, neumann_terms=40, merge=merge), 0.05)
    before, orders = layer.effective_weight().detach(), (layer.permutation_in.clone(), layer.permutation_out.clone())
    for rotation in layer.rotations():
        assert orthogonality_error(rotation) < 1e-12
    layer.merge_and_reinitialize(torch.Generator().manual_seed(7))
    torch.testing.assert_close(layer.effective_weight(), before, rtol=0, atol=1e-12)
    assert not layer.skew_r.any() and not layer.skew_p.any()
    assert not torch.equal(layer.permutation_in, orders[0]) and not torch.equal(layer.permutation_out, orders[1])


@pytest.mark.parametrize("terms", (0, 1, 3))
def test_neumann_merge_keeps_the_function_for_any_k(terms, randomize):
    layer = randomize(build(12, 9, BS, neumann_terms=terms), 0.3)
    before = layer.effective_weight().detach()
    layer.merge_and_reinitialize()
    torch.testing.assert_close(layer.effective_weight(), before, rtol=0, atol=1e-13)


@pytest.mark.parametrize("variant", (BS, FS, {**FS, "budget_p": 0}), ids=str)
def test_exact_merges_keep_the_singular_values(variant, randomize):
    layer = build(12, 9, variant, merge="exact", neumann_terms=1)
    values = torch.linalg.svdvals(layer.effective_weight())
    start, generator = layer.effective_weight().detach(), torch.Generator().manual_seed(3)
    for index in range(100):
        randomize(layer, 0.3, seed=index)
        layer.merge_and_reinitialize(generator)
    torch.testing.assert_close(torch.linalg.svdvals(layer.effective_weight()), values, rtol=0, atol=1e-10)
    assert (layer.effective_weight() - start).norm() > 1


@pytest.mark.parametrize("terms", (0, 1, 2, 3, 4, None))
@pytest.mark.parametrize("variant", (BS, FS), ids=("bs", "fs"))
def test_bf16_autocast_trains(variant, terms, randomize):
    layer = randomize(build(12, 9, variant, neumann_terms=terms), 0.1).float()
    x = torch.randn(4, 12)
    exact = layer(x)
    wanted = torch.autograd.grad(exact.sum(), list(trained(layer).values()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    assert (y.float() - exact).norm() < 0.03 * exact.norm()  # bf16 keeps 8 bits
    found = torch.autograd.grad(y.float().sum(), list(trained(layer).values()))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == torch.float32
        assert (a - b).norm() < 0.03 * b.norm()


def test_autocast_leaves_the_factors_in_full_precision(randomize):
    layer = randomize(build(12, 9, BS)).float()
    exact = layer.factors()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        factors = layer.factors()
    # Rounding R to bf16 would undo what the paper's Figure 10 measures: errors of 3e-3 from the third term.
    for a, b in zip(factors, exact, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_low_precision_layer_is_close_to_fp64(dtype, randomize):
    wide = randomize(build(12, 9, BS))
    narrow = build(12, 9, BS).to(dtype)
    state = wide.state_dict()
    narrow.load_state_dict({k: v.to(dtype) if v.is_floating_point() else v for k, v in state.items()})
    x = torch.randn(4, 12, dtype=torch.float64)
    # A dozen roundings of entries of size about 3: 2^-24 and 2^-8 of it.
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 0.15}[dtype]
    y = narrow(x.to(dtype))
    assert y.dtype == dtype
    torch.testing.assert_close(y.double(), wide(x), rtol=0, atol=tolerance)
    y.sum().backward()
    assert narrow.skew_r.grad.dtype == dtype


def test_meta_device_needs_no_weight():
    layer = POETLinear(12, 9, POETConfig(**BS), bias=True, device="meta")
    assert all(t.is_meta for t in layer.state_dict().values())
    assert layer.skew_r.shape == (4, 3) and layer.skew_p.shape == (3, 3)
    assert layer(torch.empty(2, 12, device="meta")).shape == (2, 9)


def test_repr_says_the_sizes():
    assert "block_size=3, blocks=4), p=BlockPrimitive(dimension=9, block_size=3, blocks=3), bias=True" in repr(build(12, 9, BS))


def test_a_simulated_call_leaves_nothing_behind(randomize):
    layer, x = randomize(build(12, 9, FS).float()), torch.ones(5, 12)
    expected = layer.effective_weight().clone()
    orthogonal._kept_constants.cache_clear()
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(layer(x), FakeTensor)
    assert torch.equal(layer.effective_weight(), expected)
    assert all(type(kept) is torch.Tensor for kept in orthogonal._kept_constants(layer.primitive_p.block_size, x.dtype, x.device))


@pytest.mark.parametrize("tokens", (2, 2000))
def test_input_that_does_not_fit_is_refused(tokens):
    layer = POETLinear(512, 512, POETConfig(block_size=64), generator=torch.Generator().manual_seed(0))
    with pytest.raises(TypeError, match="floating-point input"):
        layer(torch.ones(tokens, 512, dtype=torch.long))
    with pytest.raises(ValueError, match="512 inputs got an input of shape"):
        layer(torch.ones(tokens, 600))


def test_autocast_touches_neither_merges_nor_the_dense_layer(randomize):
    layers = [randomize(build(12, 9, BS).float()) for _ in range(2)]
    dense = [layers[0].to_linear().weight]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        dense.append(layers[1].to_linear().weight)
        layers[1].merge_and_reinitialize(torch.Generator().manual_seed(1))
    layers[0].merge_and_reinitialize(torch.Generator().manual_seed(1))
    assert torch.equal(*dense)
    assert torch.equal(layers[0].base_weight, layers[1].base_weight)


def test_torch_s_default_device_changes_no_draw():
    def drawn():
        layer = POETLinear(12, 9, POETConfig(**BS), device="cpu", generator=torch.Generator().manual_seed(0))
        layer.merge_and_reinitialize(torch.Generator().manual_seed(1))
        return layer.state_dict()

    wanted = drawn()
    with torch.device("meta"):  # any device but the CPU
        assert all(torch.equal(tensor, wanted[name]) for name, tensor in drawn().items())


def test_the_effective_weight_is_no_view_of_the_base_weight():
    layer = build(12, 9, {"variant": "bs", "block_size": 0})
    assert torch.equal(layer.weight, layer.base_weight) and layer.weight.data_ptr() != layer.base_weight.data_ptr()


def test_rotations_have_the_dtype_of_the_base_weight(randomize):
    layer = randomize(build(12, 9, BS), 0.3)
    wanted = layer.rotations()
    layer.base_weight.data = layer.base_weight.data.bfloat16()
    for found, exact in zip(layer.rotations(), wanted, strict=True):
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.double(), exact, rtol=1e-2, atol=1e-2)


def test_a_state_dict_that_was_cast_is_loaded():
    layer = build(12, 9, BS)
    build(12, 9, BS, seed=1).load_state_dict({name: tensor.float() for name, tensor in layer.state_dict().items()})


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_permutations_that_were_rounded_are_refused(dtype):
    layer, other = build(12, 9, BS), build(12, 9, BS, seed=1)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(ValueError, match="the permutations of layer \\(root\\) were cast to half precision"):
        other.load_state_dict({name: tensor.to(dtype) for name, tensor in layer.state_dict().items()})
    assert all(torch.equal(other.state_dict()[name], tensor) for name, tensor in before.items())


def test_an_input_without_dimensions_is_refused():
    with pytest.raises(ValueError, match="a POET layer of 12 inputs got an input of shape"):
        build(12, 9, BS)(torch.tensor(1.0, dtype=torch.float64))
