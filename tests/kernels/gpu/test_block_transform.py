"""The block transform's kernels and their pull-back, against the reference in fp64."""

import pytest
import torch

from poet.kernels.block_transform import block_transform_pullback_reference, block_transform_reference
from poet.kernels.gpu import block_products as gpu_products
from poet.kernels.gpu import block_transform as gpu
from tests.kernels.gpu.ahead_of_time import SHARED_MEMORY, Compilation, configurations

#: (n, m, (k_r, b_r), (k_p, b_p)): one tile and several, blocks below, at and above a tile's edge, blocks that
#: cover a side and blocks that leave some of it, identity sides.
CASES = (
    (33, 17, (1, 7), (3, 5)),
    (17, 33, (11, 3), (8, 2)),
    (128, 128, (2, 64), (2, 64)),
    (150, 131, (2, 65), (1, 130)),
    (40, 300, (1, 280), (2, 17)),
    (33, 17, None, (1, 33)),
    (17, 33, (2, 15), None),
    (33, 17, None, None),
)


NVIDIA, AMD, HOPPER = tuple(name for name in SHARED_MEMORY if name != "gfx942"), ("gfx942",), ("sm_90",)
#: Pointers to indices that are there, and strides that are 1.
TO_WEIGHT, *OTHERS = (
    (("q_index_ptr", "p_index_ptr"), ("x_k", "f_p", "y_q")),  # the transform's second product, and its first
    ((), ("x_k", "f_k", "y_q")),
    (("p_index_ptr",), ("x_k", "f_k", "y_q")),  # backward: the first, its columns to their places; the second
    (("p_index_ptr",), ("x_k", "f_p", "y_q")),
    (("k_index_ptr",), ("x_q", "f_k", "y_p")),  # P undone
)
OF_R, OF_P = (("p_index_ptr",), ("x1_s", "x2_q", "z_q")), (("p_index_ptr",), ("x1_s", "x2_q", "z_p"))


def products(kernel, candidates, kind, b, form, targets, **constants) -> list[Compilation]:
    """One compilation per candidate that fits: AMD has no room for a block of 256, which a launch there finds out."""
    indices, ones = form
    signature = {name: "i32" for name in kernel.arg_names if name.islower()}
    absent = [name for name in signature if name.endswith("index_ptr") and name not in indices]
    signature |= {name: "*i64" if "index" in name else kind for name in signature if name.endswith("_ptr")}
    if "z_ptr" in signature:
        signature["z_ptr"] = "*fp32"
    precision, dtype = ("ieee", torch.bfloat16) if kind == "*bf16" else ("tf32x3", torch.float32)
    constants |= {"B": b, "PRECISION": precision, "BLOCK_K": gpu_products.block_k(dtype)}
    return configurations(
        [c for c in candidates if targets != AMD or not (c.kwargs.get("WHOLE") and c.kwargs["BLOCK_P"] == 256)],
        candidates[0],
        kernel=kernel,
        signature={name: kind for name, kind in signature.items() if name not in absent and name not in ones},
        constants=constants | dict.fromkeys(absent) | dict.fromkeys(ones, 1),
        divisible=tuple(name for name, kind in signature.items() if kind == "i32" and name not in ("blocks", "steps")),
        targets=targets,
        overrides={"gfx942": {"PRECISION": "ieee"}},
    )


def compilations() -> list[Compilation]:
    """Every candidate with most indices; bf16's in the other forms too on sm_90, where the default may not spill."""
    found = []
    for stages, targets in ((3, NVIDIA), (2, AMD)):
        rotations, correlations = gpu_products.rotate_configs(stages), gpu_products.correlate_configs(stages)
        for kind, size, blocks in (("*bf16", 2, (64, 128, 256, 512)), ("*fp32", 4, (64, 512))):
            other_forms = kind == "*bf16" and targets == NVIDIA
            for b in blocks:
                kernel = gpu_products._rotate_kernel
                configs = gpu_products.candidates(rotations[size], b, gpu_products.ROTATED)
                # Between 64 and 512 the second candidate is 512's first.
                configs = configs[:1] if b in (128, 256) else configs
                found += products(kernel, configs, kind, b, TO_WEIGHT, targets)
                for form in OTHERS if other_forms else ():
                    found += products(kernel, configs, kind, b, form, HOPPER)
            for b in (64, 512):
                kernel = gpu_products._correlate_kernel
                configs = gpu_products.candidates(correlations[size], b, gpu_products.CORRELATED)
                found += products(kernel, configs, kind, b, OF_R, targets, ACCUMULATE=True)
                if other_forms:
                    found += products(kernel, configs, kind, b, OF_P, HOPPER, ACCUMULATE=False)
    return found


def draw(case, dtype, device, permuted=True, seed=0):
    """(weight, g_r, g_p, order_out, order_in, inverse_in, grad); the blocks are orthogonal, as the layer's are."""
    n, m, side_r, side_p = case
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def blocks(side):
        return None if side is None else torch.linalg.qr(normal(side[0], side[1], side[1]))[0]

    def order(size):
        return torch.randperm(size, generator=generator).to(device)

    order_out, order_in = (order(n), order(m)) if permuted else (None, None)
    numbers = (normal(n, m), blocks(side_r), blocks(side_p), normal(n, m))
    weight, g_r, g_p, grad = (None if x is None else x.to(device, dtype) for x in numbers)
    return weight, g_r, g_p, order_out, order_in, None if order_in is None else order_in.argsort(), grad


def run(weight, g_r, g_p, order_out, order_in, inverse_in, grad):
    """(transformed, gradient of R's blocks, of P's), by two functions and then by the one that does both."""
    transformed = gpu.block_transform(weight, g_r, g_p, order_out, inverse_in)
    pulled = gpu.block_transform_pullback(weight, g_r, g_p, grad, order_out, order_in)
    built = grad.clone()
    together = gpu.pull_back_and_build(weight, g_r, g_p, built, order_out, order_in, inverse_in)
    return transformed, *pulled, built, *together


def expected(weight, g_r, g_p, order_out, order_in, inverse_in, grad):
    weight, g_r, g_p, grad = (None if x is None else x.double() for x in (weight, g_r, g_p, grad))
    transformed = block_transform_reference(weight, g_r, g_p, order_out, inverse_in)
    pulled = block_transform_pullback_reference(weight, g_r, g_p, grad, order_out, order_in)
    return 2 * (transformed, *pulled)


def bound(dtype) -> float:
    """Of ||found - expected|| / ||expected||.

    Half precision rounds twice, each time by at most u = eps / 2 of every number, and products with orthogonal blocks
    keep norms: 2 u for the transform. The gradients are rounded once on the way; a product of independent errors with
    the rest is as much smaller than the product itself as the errors are, u, and the other u is margin. In fp32 sums of
    s terms dominate: about sqrt(s) 2^-24 of their norm where additions round, up to s / 8 * 2^-23 where they truncate,
    as a tensor core's do once every 8 terms: 35 * 2^-23 at the 300 terms here. One TF32 product alone would be 2^-11
    off, wrong indices of order 1.
    """
    return 2**-17 if dtype == torch.float32 else torch.finfo(dtype).eps


def check(found, reference, dtype):
    for name, x, y in zip(2 * ("transformed", "grad_r", "grad_p"), found, reference, strict=True):
        assert (x is None) == (y is None), name
        if x is None:
            continue
        assert x.shape == y.shape and x.dtype == (dtype if name == "transformed" else torch.float32), name
        error = ((x.double() - y).norm() / y.norm()).item()
        assert error <= bound(dtype), f"{name}: relative error {error:.2e}, NaN: {x.isnan().sum().item()}"


@pytest.mark.parametrize(
    ("dtype", "permuted"),
    (
        (torch.float32, True),
        (torch.float32, False),
        (torch.bfloat16, True),
        (torch.bfloat16, False),
        (torch.float16, True),
    ),
    ids=str,
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_transform_and_pullback_equal_the_reference(case, dtype, permuted, device):
    inputs = draw(case, dtype, device, permuted)
    found = run(*inputs)
    check(found, expected(*inputs), dtype)


def test_nothing_to_rotate_moves_bits(device):
    weight, _, _, order_out, order_in, inverse_in, grad = draw((70, 150, None, None), torch.bfloat16, device)
    found = gpu.block_transform(weight, None, None, order_out, inverse_in)
    assert torch.equal(found, block_transform_reference(weight, None, None, order_out, inverse_in))
    assert gpu.pull_back_and_build(weight, None, None, grad, order_out, order_in, inverse_in) == (None, None)
    assert torch.equal(grad, found)


@pytest.mark.parametrize(
    "case", ((90, 70, (2, 33), (4, 20)), (90, 70, (1, 40), (1, 50)), (90, 70, (2, 33), None)), ids=str
)
def test_strips_and_split_sums_change_nothing_but_the_order_of_addition(case, device, monkeypatch):
    """Several strips: blocks, blocks with rows that none covers, rows alone; sums in parts, the last one shorter."""
    inputs = draw(case, torch.float32, device)
    monkeypatch.setattr(gpu, "STRIP", 25 * 70)
    strips = list(gpu._strips(inputs[0], inputs[2]))
    assert len(strips) > 1 and [start for start, _, _ in strips[1:]] == [stop for _, stop, _ in strips[:-1]]
    monkeypatch.setattr(gpu_products, "SHORTEST_PART", 10)
    assert len(gpu_products.sums_like(inputs[1], 25)) == 2
    check(run(*inputs), expected(*inputs), torch.float32)


@pytest.mark.parametrize("b", (64, 128, 256))
def test_every_candidate_gives_the_same_result(b, device, monkeypatch):
    inputs = draw((b + 9, b, (1, b), (1, b)), torch.bfloat16, device)
    reference, results = expected(*inputs), []
    every = gpu_products.candidates
    for number in (1, 2):  # the last one, and the default where there are two
        for tuned in (gpu_products._tuned_rotate, gpu_products._tuned_correlate):
            monkeypatch.setattr(tuned, "cache", {})
        monkeypatch.setattr(gpu_products, "candidates", lambda *arguments, number=number: every(*arguments)[-number:])
        results.append(run(*inputs))
        check(results[-1], reference, torch.bfloat16)
    if device == "cuda":  # the interpreter's products are NumPy's, whose order of addition depends on the shape
        assert all(torch.equal(x, y) for x, y in zip(*results, strict=True))


def test_a_program_goes_over_many_tiles_of_a_block_that_it_keeps(device, monkeypatch):
    """As on a GPU with few multiprocessors: the tile in registers is the next one, from where its index says."""
    monkeypatch.setattr(gpu_products, "PROGRAMS", 1)
    gpu_products._shares.cache_clear()
    inputs = draw((200, 330, (1, 129), (2, 70)), torch.bfloat16, device)
    assert gpu_products._shares(2, 6, 128, 64) == 1  # six tiles a program
    check(run(*inputs), expected(*inputs), torch.bfloat16)
    gpu_products._shares.cache_clear()


def test_twice_is_bitwise_the_same(device):
    inputs = draw(CASES[0], torch.bfloat16, device)
    assert all(torch.equal(x, y) for x, y in zip(run(*inputs), run(*inputs), strict=True))


def test_inputs_need_not_be_contiguous_and_are_not_changed(device):
    weight, g_r, g_p, *orders, grad = draw((33, 17, (2, 5), (1, 20)), torch.float32, device)
    strided = [x.mT.contiguous().mT for x in (weight, g_r, g_p)]
    before = [x.clone() for x in (*strided, grad, *orders)]
    found = run(*strided, *orders, grad[:, :1].expand_as(grad))
    check(found, expected(weight, g_r, g_p, *orders, grad[:, :1].expand_as(grad)), torch.float32)
    assert all(torch.equal(x, y) for x, y in zip((*strided, grad, *orders), before, strict=True))


def test_a_program_never_goes_without_a_share():
    """Shares cover every tile of q, however many programs there are room for."""
    for tiles_p in (1, 3, 56, 500):
        for tiles_q in (1, 2, 7, 224):
            shares = gpu_products._shares(tiles_p, tiles_q, 256, 64)
            assert 1 <= shares <= tiles_q
    assert gpu_products._shares(56, 64, 256, 64) == 2  # 112 programs at once, not 168 in two rounds
