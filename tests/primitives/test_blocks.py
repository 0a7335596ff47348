"""Stochastic primitives against Equations (fs_spo) and (bs_spo) and the counts of Table 1."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from poet.orthogonal import orthogonality_error, skew_unpack, cayley
from poet.primitives import BlockPrimitive, block_stochastic, fully_stochastic, split_budget


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def random_blocks(primitive, seed=0):
    packed = torch.randn(primitive.blocks, math.comb(primitive.block_size, 2), generator=seeded(seed))
    return cayley(skew_unpack(packed.double()))


PRIMITIVES = st.one_of(
    st.builds(lambda b, k: block_stochastic(b * k, b), st.integers(2, 6), st.integers(1, 4)),
    st.builds(fully_stochastic, st.integers(4, 24), st.sampled_from((0.0, 0.5, 0.75, 1.0))),
)


def test_the_covered_coordinates_come_in_random_order():
    primitive = block_stochastic(12, 3)
    draws = {tuple(primitive.sample(seeded(seed)).tolist()) for seed in range(20)}
    assert len(draws) == 20


@settings(max_examples=40, deadline=None, derandomize=True)
@given(primitive=PRIMITIVES.filter(lambda p: p.blocks), seed=st.integers(0, 99))
def test_embed_is_the_paper_s_equation_and_orthogonal(reference, primitive, seed):
    order, blocks = primitive.sample(seeded(seed)), random_blocks(primitive, seed)
    dense = primitive.embed(blocks, order)
    expected = reference.primitive(blocks, order, primitive.dimension)
    torch.testing.assert_close(dense, expected, rtol=0, atol=1e-12)
    assert orthogonality_error(dense) < 1e-12


def test_fully_stochastic_covers_each_coordinate_with_frequency_b_over_m():
    primitive, draws, generator = fully_stochastic(20, 0.3), 4000, seeded(0)
    counts = torch.zeros(20)
    for _ in range(draws):
        counts[primitive.sample(generator)[: primitive.covered]] += 1
    # Five standard deviations of a binomial: a fair sampler fails once in 10^5 seeds.
    bound = 5 * math.sqrt(draws * 0.3 * 0.7)
    assert (counts - 0.3 * draws).abs().max() < bound
    assert counts.std() > 5  # not a fixed rotation through the coordinates


@pytest.mark.parametrize(("m", "n", "b"), ((512, 1280, 64), (768, 2048, 256), (12, 20, 4)))
def test_block_stochastic_count_is_table_1(m, n, b):
    count = block_stochastic(m, b).parameters + block_stochastic(n, b).parameters
    assert count == (m + n) * (b - 1) // 2


@pytest.mark.parametrize("m", (512, 1376, 768))
@pytest.mark.parametrize("budget", (1 / 8, 1 / 4, 1 / 2, 1))
def test_fully_stochastic_count_is_table_1(m, budget):
    b = int(m * budget)
    assert 2 * fully_stochastic(m, budget).parameters == b * (b - 1)
    assert fully_stochastic(m, budget) == BlockPrimitive(m, b, 1)


@pytest.mark.parametrize("primitive", (fully_stochastic(8, 0), block_stochastic(8, 0)))
def test_zero_is_the_identity_side(primitive):
    assert (primitive.parameters, primitive.covered, primitive.blocks) == (0, 0, 0)
    assert torch.equal(primitive.sample(seeded(3)), torch.arange(8))


@pytest.mark.parametrize("size", (1, -4))
def test_blocks_that_rotate_nothing_are_refused(size):
    with pytest.raises(ValueError, match=f"{size} rotates nothing"):
        block_stochastic(12, size)


@pytest.mark.parametrize("size", (5, 24))
def test_block_sizes_that_do_not_divide_are_refused(size):
    with pytest.raises(ValueError, match=f"{size} does not divide dimension 12"):
        block_stochastic(12, size)


@pytest.mark.parametrize("budget", (-0.1, 1.1, math.nan))
def test_budgets_outside_the_unit_interval_are_refused(budget):
    with pytest.raises(ValueError, match="between 0 and 1"):
        fully_stochastic(12, budget)


def test_a_budget_without_a_block_is_refused():
    with pytest.raises(ValueError, match="no 2 x 2 block"):
        fully_stochastic(12, 0.1)


@pytest.mark.parametrize("share", (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1))
@pytest.mark.parametrize(("m", "n", "budget"), ((512, 1376, 1 / 3), (1376, 512, 1 / 4), (512, 512, 1 / 8)))
def test_a_split_budget_keeps_the_total(m, n, budget, share):
    total = fully_stochastic(m, budget).parameters + fully_stochastic(n, budget).parameters
    r, p = split_budget(m, n, budget, share)
    assert (r.dimension, p.dimension) == (m, n)
    largest = max(r.block_size, p.block_size)  # rounding moves each side by at most half a row
    assert abs(r.parameters + p.parameters - total) <= largest
    assert abs(r.parameters - share * total) <= largest / 2
    assert (p.blocks == 0) == (share == 1) and (r.blocks == 0) == (share == 0)


def test_a_split_that_no_block_can_hold_is_refused():
    with pytest.raises(ValueError, match="more than dimension 512"):
        split_budget(512, 1376, 1 / 2, 1)
