"""The block transform's kernels and their derivative, against the reference in fp64."""

import pytest
import torch

from poet.kernels import block_transform as kernels
from poet.primitives import BlockPrimitive
from poet.transform import Side, transform_reference, transform_vjp_reference
from tests.kernels.ahead_of_time import TARGETS, Compilation

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
#: Indices that are there, and strides that are 1, in each call of the two kernels.
ROTATIONS = (
    (("scatter_ptr",), ("x_k", "g_k", "y_q")),  # R, forward and backward
    (("scatter_ptr",), ("x_k", "g_p", "y_q")),  # P
    (("gather_ptr",), ("x_q", "g_k", "y_p")),  # P undone
)
CORRELATIONS = ((("gather_ptr",), ("x1_s", "x2_q", "z_q")),)


def compilations() -> list[Compilation]:
    return [
        compilation(kernel, form, kind, b, square)
        for kind, sizes in (("*bf16", (16, 64, 128, 256)), ("*fp32", (64, 256)))
        for b in sizes
        for kernel, forms, square in (
            (kernels._rotate_kernel, ROTATIONS, False),
            (kernels._correlate_kernel, CORRELATIONS, True),
        )
        for form in (forms if b == 256 else forms[:1])
    ]


def compilation(kernel, form, kind, b, square) -> Compilation:
    indices, ones = form
    signature = {name: "i32" for name in kernel.arg_names if name.islower()}
    absent = [name for name in ("gather_ptr", "scatter_ptr") if name in signature and name not in indices]
    signature |= {name: kind for name in signature if name.endswith("_ptr")} | dict.fromkeys(indices, "*i64")
    if "z_ptr" in signature:
        signature["z_ptr"] = "*fp32"
    tile = kernels.tile_shape(b, 2 if kind == "*bf16" else 4, square=square)
    precision = "ieee" if kind == "*bf16" else "tf32x3"
    return Compilation(
        kernel=kernel,
        signature={name: type_ for name, type_ in signature.items() if name not in absent and name not in ones},
        constants={"B": b, "PRECISION": precision, **tile, **dict.fromkeys(absent), **dict.fromkeys(ones, 1)},
        num_warps=kernels.warps(tile),
        num_stages=3,
        divisible=tuple(name for name, type_ in signature.items() if type_ == "i32" and name not in ("blocks", "steps")),
        targets=TARGETS,
        overrides={"gfx942": {"PRECISION": "ieee"}},
    )


def draw(case, dtype, device, seed=0):
    """(base, g_r, g_p, permutation_in, permutation_out, grad); the blocks are orthogonal, as the layer's are."""
    n, m, side_r, side_p = case
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def blocks(side):
        return None if side is None else torch.linalg.qr(normal(side[0], side[1], side[1]))[0]

    permutations = (torch.randperm(size, generator=generator).to(device) for size in (m, n))
    base, g_r, g_p, grad = (
        None if x is None else x.to(device, dtype) for x in (normal(n, m), blocks(side_r), blocks(side_p), normal(n, m))
    )
    return base, g_r, g_p, *permutations, grad


def run(base, g_r, g_p, permutation_in, permutation_out, grad):
    """(W_RP, gradient of R's blocks, of P's, W_RP from the derivative)."""
    arguments = base, g_r, g_p, permutation_in, permutation_out
    wanted = g_r is not None, g_p is not None
    return kernels.block_transform(*arguments), *kernels.block_transform_vjp(*arguments, grad, *wanted, True)


def expected(base, g_r, g_p, permutation_in, permutation_out, grad):
    """The same by the reference, in fp64."""

    def side(size, blocks, permutation):
        k, b = (0, 0) if blocks is None else blocks.shape[:2]
        return Side(BlockPrimitive(size, b, k), None if blocks is None else blocks.double(), permutation)

    sides = side(base.shape[1], g_r, permutation_in), side(base.shape[0], g_p, permutation_out)
    wanted = g_r is not None, g_p is not None
    gradients, weight = transform_vjp_reference(base.double(), *sides, grad.double(), wanted, True)
    return transform_reference(base.double(), *sides), *gradients, weight


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


def check(found, exact, dtype):
    for name, ours, theirs in zip(("W", "by R", "by P", "W again"), found, exact, strict=True):
        if theirs is None:
            assert not ours.numel()
            continue
        assert ours.dtype == (torch.float32 if name.startswith("by") else dtype)
        error = (ours.double() - theirs).norm() / theirs.norm()
        assert error <= bound(dtype), (name, error)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float16), ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_equal_the_reference(case, dtype, device):
    inputs = draw(case, dtype, device)
    check(run(*inputs), expected(*inputs), dtype)


@pytest.mark.parametrize("wanted", ((True, False), (False, True), (False, False)))
@pytest.mark.parametrize("build", (True, False))
def test_what_is_not_wanted_is_empty(wanted, build, device):
    *arguments, grad = draw(CASES[0], torch.float32, device)
    found = kernels.block_transform_vjp(*arguments, grad, *wanted, build)
    assert [result.numel() > 0 for result in found] == [*wanted, build]
    whole = run(*arguments, grad)[1:]
    for ours, theirs in zip(found, whole, strict=True):
        assert not ours.numel() or torch.equal(ours, theirs)


def test_split_sums_change_nothing_but_the_order_of_addition(device, monkeypatch):
    inputs = draw((25, 70, (1, 7), (2, 5)), torch.float32, device)
    monkeypatch.setattr(kernels, "SHORTEST_PART", 10)
    assert (kernels.sum_parts(1, 7, 25), kernels.sum_parts(2, 5, 70)) == (2, 7)
    check(run(*inputs), expected(*inputs), torch.float32)


def test_twice_is_bitwise_the_same(device):
    inputs = draw(CASES[0], torch.bfloat16, device)
    assert all(torch.equal(x, y) for x, y in zip(run(*inputs), run(*inputs), strict=True))


def test_inputs_need_not_be_contiguous_and_are_not_changed(device):
    base, g_r, g_p, *permutations, grad = draw((33, 17, (2, 5), (1, 20)), torch.float32, device)
    strided = [x.mT.contiguous().mT for x in (base, g_r, g_p)]
    before = [x.clone() for x in (*strided, grad, *permutations)]
    spread = grad[:, :1].expand_as(grad)
    check(run(*strided, *permutations, spread), expected(base, g_r, g_p, *permutations, spread), torch.float32)
    assert all(torch.equal(x, y) for x, y in zip((*strided, grad, *permutations), before, strict=True))


@pytest.mark.parametrize("case", (CASES[0], *CASES[5:]), ids=str)
def test_registration(case, device):
    """Schema, fake tensors and tracing agree with what the operators do. They differ by which sides are the identity, and by nothing else."""
    *arguments, grad = draw(case, torch.float32, device)
    torch.library.opcheck(kernels.block_transform, tuple(arguments))
    wanted = arguments[1] is not None, arguments[2] is not None
    torch.library.opcheck(kernels.block_transform_vjp, (*arguments, grad, *wanted, True))
