"""Formulas for operations, against products that are written out and counted, and against what the layers count."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import poet.kernels.counting  # registers what FlopCounterMode counts
from poet import POETConfig
from poet.kernels.block_transform import block_transform, pull_back_and_build
from tests.benchmarks import operations
from tests.benchmarks.layers import layer_cases


def counted(function):
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def test_a_plain_layer():
    layer, x = torch.nn.Linear(6, 10, bias=False), torch.randn(7, 6, requires_grad=True)
    assert operations.linear(6, 10, 7) == counted(lambda: layer(x).sum().backward())


@pytest.mark.parametrize(
    ("terms", "forward", "backward"), [(0, 0, 0), (1, 1, 2), (2, 2, 7), (3, 3, 7), (4, 3, 12), (5, 4, 12)]
)
def test_cayley_neumann_by_hand(terms, forward, backward):
    """In units of b^3, half a product: X; E_2 = I + X E_1; the last product. Backward see the recursion."""
    assert operations.cayley_neumann(5, 4, terms) == 5 * 4**3 * forward
    assert operations.cayley_neumann_pullback(5, 4, terms) == 5 * 4**3 * backward


def test_muon_and_galore():
    def iterate(x, steps=2):
        for _ in range(steps):
            gram = x @ x.mT
            x = (gram @ gram + gram) @ x

    shapes = [(4, 9), (9, 4), (5, 5)]
    wide = [torch.randn(min(s), max(s)) for s in shapes]
    assert operations.newton_schulz(shapes, 2) == sum(counted(lambda x=x: iterate(x)) for x in wide)
    p = torch.randn(4, 3)
    assert operations.low_rank_projections([(4, 9)], 3) == counted(lambda: p @ (p.mT @ wide[0]))


@pytest.mark.parametrize("tokens", [8, 4096])
def test_a_layer_counts_about_what_its_formula_says(tokens):
    """Not less than it (a product that nobody counts), nor twice as much (one that is done twice)."""
    for case in layer_cases(((64, 96),), (tokens,), block_sizes=(8, 32), budgets=(4, 2)):
        work = case.build("cpu")
        work.call()
        found = counted(work.call)
        if case.plain:
            assert found == case.flops
        else:
            assert 0.65 < found / case.flops < 1.5, (case.id, found / case.flops)


def test_block_sizes_that_do_not_divide_are_no_cases():
    variants = {case.variant for case in layer_cases(((512, 1376),), (256,))}
    assert variants == {"linear", "poet-fs-1_8", "poet-fs-1_4", "poet-fs-1_2"}
    assert "poet-bs-b1024" in {case.variant for case in layer_cases(((4096, 14336),), (256,))}
    assert POETConfig(block_size=256).primitives(512, 1280)


@pytest.mark.parametrize("sides", [((4, 2), (3, 4)), ((1, 5), (1, 7)), ((0, 0), (1, 7)), ((2, 4), (0, 0))])
def test_block_transforms_are_what_the_operators_count(sides):
    m, n = 8, 12
    g_r, g_p = (torch.randn(k, b, b) if k else None for k, b in sides)
    weight, grad, none = torch.randn(n, m), torch.randn(n, m), None
    forward = counted(lambda: block_transform(weight, g_r, g_p, none, none, none))
    assert operations.block_transform(m, n, *sides) == forward
    backward = counted(lambda: pull_back_and_build(weight, g_r, g_p, grad, none, none, none))
    assert operations.pull_back_and_build(m, n, *sides) == backward
