"""Formulas for operations, against products that are written out and counted, and against what the layers count."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import operations
from benchmarks.layers import layer_cases
from poet import POETConfig
from poet.orthogonal import packed_size, rotation_blocks, rotation_blocks_vjp
from poet.primitives import BlockPrimitive
from poet.transform import Side, transform, transform_vjp


def counted(function):
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def test_a_plain_layer():
    layer, x = torch.nn.Linear(6, 10, bias=False), torch.randn(7, 6, requires_grad=True)
    assert operations.linear(6, 10, 7) == counted(lambda: layer(x).sum().backward())


@pytest.mark.parametrize("terms", range(10))
def test_the_maps_are_what_their_products_count(terms):
    packed, grad = torch.randn(5, packed_size(4)), torch.randn(5, 4, 4)
    assert operations.rotation_blocks(5, 4, terms) == counted(lambda: rotation_blocks(packed, terms))
    assert operations.rotation_blocks_vjp(5, 4, terms) == counted(lambda: rotation_blocks_vjp(packed, grad, terms))


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
def test_a_layer_counts_what_its_formula_says(tokens):
    for case in layer_cases(((64, 96),), (tokens,), block_sizes=(8, 32), budgets=(4, 2)):
        work = case.build("cpu")
        work.call()
        found = counted(work.call)
        assert found == case.flops, (case.id, found / case.flops)


def test_block_sizes_that_do_not_divide_are_no_cases():
    variants = {case.variant for case in layer_cases(((512, 1376),), (256,))}
    assert variants == {"linear", "poet-fs-1_8", "poet-fs-1_4", "poet-fs-1_2"}
    assert "poet-bs-b1024" in {case.variant for case in layer_cases(((4096, 14336),), (256,))}
    assert POETConfig(block_size=256).primitives(512, 1280)


@pytest.mark.parametrize("sides", [((4, 2), (3, 4)), ((1, 5), (1, 7)), ((0, 0), (1, 7)), ((2, 4), (0, 0))])
def test_transforms_are_what_their_products_count(sides):
    m, n = 8, 12
    r, p = (
        Side(BlockPrimitive(size, b, k), torch.randn(k, b, b) if k else None, torch.arange(size))
        for size, (k, b) in zip((m, n), sides, strict=True)
    )
    base, grad, wanted = torch.randn(n, m), torch.randn(n, m), tuple(k > 0 for k, _ in sides)
    assert operations.transform(m, n, *sides) == counted(lambda: transform(base, r, p))
    assert operations.transform_vjp(m, n, *sides) == counted(lambda: transform_vjp(base, r, p, grad, wanted, True))
