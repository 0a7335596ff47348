"""Operations of cases, which are counted on shapes alone, against formulas and against what real calls multiply."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.kernels import kernel_cases
from benchmarks.layers import layer_cases
from benchmarks.steps import low_rank_projections, newton_schulz
from poet import POETConfig


def counted(function):
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def rotation_blocks(blocks, b, terms):
    """The map of a batch: X = Q^2, the sums E_2, ..., E_j, and the last product."""
    return 2 * blocks * b**3 * (terms // 2 + 1 if terms else 0)


def rotation_blocks_vjp(blocks, b, terms):
    """Its derivative: X, two products at the ends and the last one, and three for each further sum; k = 1 has the last alone."""
    half = terms // 2
    return 2 * blocks * b**3 * (4 + 3 * (half - 1) if half else terms)


def transform(m, n, side_r, side_p):
    """W_RP from W; ``side`` is (blocks, b) of R (on the inputs) and of P (on the outputs)."""
    (k_r, b_r), (k_p, b_p) = side_r, side_p
    return 2 * n * k_r * b_r**2 + 2 * m * k_p * b_p**2


def transform_vjp(m, n, side_r, side_p):
    """W_RP again, a gradient of each side as large as its part of that, and P undone on the inputs that R acts on."""
    (k_r, b_r), (k_p, b_p) = side_r, side_p
    return 2 * transform(m, n, side_r, side_p) + 2 * k_r * b_r * k_p * b_p**2


def sides_of(variant, m, n):
    kind, size = variant.removeprefix("poet-").split("-", 1)
    if kind == "bs":
        b = int(size[1:])
        return (m // b, b), (n // b, b)
    share = int(size[2:])
    return (1, m // share), (1, n // share)


@pytest.mark.parametrize("terms", range(10))
def test_the_maps_are_what_their_products_count(terms):
    found = kernel_cases(elements=80, block_sizes=(4, 256), terms=(terms,), shapes=(), with_reference=True)
    maps = {"rotation_blocks": rotation_blocks, "rotation_blocks_vjp": rotation_blocks_vjp}
    assert {case.operation for case in found} == set(maps)
    for case in found:
        blocks, b, _ = map(int, case.shape.split("x"))
        assert case.flops == maps[case.operation](blocks, b, int(case.variant.rpartition("=")[2])), case.id


def test_muon_and_galore():
    def iterate(x, steps=2):
        for _ in range(steps):
            gram = x @ x.mT
            x = (gram @ gram + gram) @ x

    shapes = [(4, 9), (9, 4), (5, 5)]
    wide = [torch.randn(min(s), max(s)) for s in shapes]
    assert newton_schulz(shapes, 2) == sum(counted(lambda x=x: iterate(x)) for x in wide)
    p = torch.randn(4, 3)
    assert low_rank_projections([(4, 9)], 3) == counted(lambda: p @ (p.mT @ wide[0]))


@pytest.mark.parametrize("tokens", [8, 4096])
def test_a_layer_counts_what_its_call_multiplies_and_its_formula_says(tokens):
    m, n = 64, 96
    for case in layer_cases(((m, n),), (tokens,), block_sizes=(8, 32), budgets=(4, 2)):
        assert case.flops == counted(case.build("cpu").call), case.id
        expected = 6 * tokens * m * n
        if not case.plain:
            sides = sides_of(case.variant, m, n)
            expected += sum(rotation_blocks(k, b, 3) + rotation_blocks_vjp(k, b, 3) for k, b in sides)
            expected += transform(m, n, *sides) + transform_vjp(m, n, *sides)
        assert case.flops == expected, case.id


def test_block_sizes_that_do_not_divide_are_no_cases():
    variants = {case.variant for case in layer_cases(((512, 1376),), (256,))}
    assert variants == {"linear", "poet-fs-1_8", "poet-fs-1_4", "poet-fs-1_2"}
    assert "poet-bs-b1024" in {case.variant for case in layer_cases(((4096, 14336),), (256,))}
    assert POETConfig(block_size=256).primitives(512, 1280)


def test_transforms_are_what_their_products_count():
    m, n = 48, 96
    maps = {"transform": transform, "transform_vjp": transform_vjp}
    found = kernel_cases(elements=1, block_sizes=(), shapes=((m, n),), transform_blocks=(8, 16), transform_budgets=(4, 3))
    assert len(found) == 8
    for case in found:
        assert case.flops == maps[case.operation](m, n, *sides_of(case.variant, m, n)) == counted(case.build("cpu").call), case.id
