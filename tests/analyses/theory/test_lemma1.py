"""Lemma 1: the factorization gives the matrix back, and the chances of its sets are those of enumeration."""

import itertools
import math

import numpy as np
import pytest
import torch
from analyses.theory import lemma1
from analyses.theory.approximation import counting_bound, sets_of
from analyses.theory.random_matrices import random_orthogonal
from analyses.theory.statements import frequency_of
from poet.orthogonal import cayley, packed_size, skew_unpack
from poet.primitives import BlockPrimitive, block_stochastic


def orthogonal(m: int, determinant: int, seed: int) -> torch.Tensor:
    matrix = random_orthogonal(m, np.random.default_rng(seed))
    if round(float(torch.linalg.det(matrix))) != determinant:
        matrix[0] *= -1
    return matrix


@pytest.mark.parametrize("primitive", [sets_of(6, 2), sets_of(7, 4), sets_of(5, 5), block_stochastic(8, 4)])
@pytest.mark.parametrize("determinant", [1, -1])
def test_the_product_of_the_primitives_is_the_matrix(primitive, determinant):
    matrix = orthogonal(primitive.dimension, determinant, 3)
    found = lemma1.factorize(matrix, primitive, torch.Generator().manual_seed(3))
    torch.testing.assert_close(found.product(), matrix, rtol=0, atol=1e-13)
    for blocks, permutation in found.steps:
        g = primitive.embed(blocks, permutation)
        torch.testing.assert_close(g @ g.T, torch.eye(primitive.dimension, dtype=g.dtype), rtol=0, atol=1e-13)
    signs = [round(float(torch.linalg.det(primitive.embed(*step)))) for step in found.steps]
    assert signs.count(-1) == (determinant == -1) and signs[:-1].count(-1) == 0  # rotations, and one mended sign
    assert found.last_entry == pytest.approx(determinant)


def test_without_the_last_step_a_matrix_of_determinant_minus_one_is_not_reached():
    matrix, primitive = orthogonal(6, -1, 5), sets_of(6, 3)
    found = lemma1.factorize(matrix, primitive, torch.Generator().manual_seed(5), mend_sign=False)
    mirror = torch.diag(torch.tensor([1.0, 1, 1, 1, 1, -1], dtype=torch.float64))
    torch.testing.assert_close(found.product() @ matrix.T, mirror, rtol=0, atol=1e-13)


@pytest.mark.parametrize("vector", [[3.0, 4.0], [-3.0, 4.0], [-2.0, 0.0, 0.0], [1.0, 1e-9, 0.0], [0.0, 0.0, -5.0], [0.0, 0.0]])
def test_rotation_to_first_axis(vector):
    v = torch.tensor(vector, dtype=torch.float64)
    q = lemma1.rotation_to_first_axis(v)
    expected = torch.zeros_like(v)
    expected[0] = v.norm()
    torch.testing.assert_close(q @ v, expected, rtol=0, atol=1e-15 * max(1.0, float(v.norm())))
    torch.testing.assert_close(q @ q.T, torch.eye(len(v), dtype=v.dtype), rtol=0, atol=1e-15)
    assert float(torch.linalg.det(q)) == pytest.approx(1)


@pytest.mark.parametrize("primitive", [sets_of(7, 3), block_stochastic(6, 3)])
def test_the_number_of_sets_is_that_of_the_sets_alone(primitive):
    """Replays the sampled sets, and counts by the proof's words when each column is finished."""
    m, b = primitive.dimension, primitive.block_size
    found = lemma1.factorize(orthogonal(m, 1, 7), primitive, torch.Generator().manual_seed(7))
    generator, used = torch.Generator().manual_seed(7), 0
    for k in range(m - 1):
        waiting = set(range(k + 1, m))
        while waiting:
            used += 1
            permutation = primitive.sample(generator)[: primitive.covered].tolist()
            for start in range(0, primitive.covered, b):
                block = permutation[start : start + b]
                waiting -= set(block) if k in block else set()
    assert found.sampled == used


def all_sets(m: int, b: int) -> list[set[int]]:
    return [set(s) for s in itertools.combinations(range(m), b)]


def test_chances_are_those_of_enumeration():
    m, b, sets = 5, 3, all_sets(5, 3)
    primitive = sets_of(m, b)
    assert lemma1.pair_probability(primitive) == pytest.approx(np.mean([{0, 1} <= s for s in sets]))
    for others in (1, 2, 4):
        wanted = set(range(1, 1 + others))
        assert float(lemma1.never_with(primitive, others)) == pytest.approx(np.mean([0 not in s or not s & wanted for s in sets]))
        missed = [not wanted <= set().union(*(s for s in chosen if 0 in s)) for chosen in itertools.product(sets, repeat=3)]
        assert lemma1.column_failure(primitive, others, 3) == pytest.approx(np.mean(missed))


def test_pairs_in_a_set_are_fewer_than_the_paper_has():
    for m, b in ((8, 2), (16, 4), (32, 16)):
        assert lemma1.pair_probability(sets_of(m, b)) < (b / m) ** 2
        assert lemma1.pair_probability(block_stochastic(m, b)) == pytest.approx(lemma1.pair_probability(sets_of(m, b)) * m / b)


def test_expected_number_by_hand():
    # m = 3, b = 2: a set finishes one of three pairs. Column 1: 3/2 for its first pair, 3 for its second; column 2: 3.
    assert lemma1.expected_needed(sets_of(3, 2)) == pytest.approx(1.5 + 3 + 3)
    assert lemma1.expected_needed(sets_of(6, 6)) == 5
    assert lemma1.expected_needed(sets_of(8, 4)) == pytest.approx(2 * lemma1.expected_needed(block_stochastic(8, 4)))


@pytest.mark.parametrize("primitive", [sets_of(8, 2), sets_of(6, 3), block_stochastic(8, 4)])
def test_simulation_agrees_with_the_exact_chances(primitive):
    rng = np.random.default_rng(11)
    drawn = [lemma1.primitives_needed(primitive, rng) for _ in range(400)]
    assert abs(np.mean(drawn) - lemma1.expected_needed(primitive)) < 4 * np.std(drawn) / 20
    failed = frequency_of(lemma1.windows_fail(primitive, 1.5, 300, rng))
    assert failed.low <= lemma1.windows_failure(primitive, 1.5) <= failed.high


def test_labels_are_those_of_the_sampler():
    primitive, rng = BlockPrimitive(7, 2, 2), np.random.default_rng(13)
    sets = lemma1.labels(primitive, 3000, rng)
    assert all(((sets == label).sum(1) == count).all() for label, count in ((0, 2), (1, 2), (-1, 3)))
    generator = torch.Generator().manual_seed(13)
    sampled = [primitive.sample(generator)[:4].view(2, 2).tolist() for _ in range(3000)]
    with_sampler = np.mean([any({2, 5} == set(block) for block in blocks) for blocks in sampled])
    with_labels = lemma1.together(sets, 2)[:, 5 - 3].mean()
    chance = lemma1.pair_probability(primitive)
    error = math.sqrt(chance / 3000)
    assert abs(with_sampler - chance) < 4 * error and abs(with_labels - chance) < 4 * error


def test_pairs_missed_counts_pairs():
    rng = np.random.default_rng(17)
    assert (lemma1.pairs_missed(sets_of(6, 3), 1, 20, rng) == 15 - 3).all()
    assert (lemma1.pairs_missed(sets_of(6, 6), 1, 5, rng) == 0).all()


@pytest.mark.parametrize("primitive", [sets_of(5, 3), block_stochastic(6, 3)])
def test_tangent_rank_is_the_rank_of_the_jacobian(primitive):
    """Against the Jacobian, by autograd, of (Q_1, ..., Q_c) -> prod G_j cayley(Q_j) at 0, for growing c."""
    rng, generator = np.random.default_rng(19), torch.Generator().manual_seed(19)
    steps, ranks = [], []
    for count in range(1, 11):
        blocks = torch.stack([random_orthogonal(3, rng) for _ in range(primitive.blocks)])
        steps.append((blocks, primitive.sample(generator)))

        def product(q):
            result = torch.eye(primitive.dimension, dtype=torch.float64)
            for part, (fixed, permutation) in zip(q, steps, strict=True):
                result = result @ primitive.embed(fixed @ cayley(skew_unpack(part)), permutation)
            return result

        zero = torch.zeros(count, primitive.blocks, packed_size(3), dtype=torch.float64)
        jacobian = torch.autograd.functional.jacobian(product, zero).reshape(primitive.dimension**2, -1)
        ranks.append(lemma1.tangent_rank(primitive, steps))
        assert ranks[-1] == int(torch.linalg.matrix_rank(jacobian))
    assert ranks[0] == primitive.parameters and ranks[-1] == packed_size(primitive.dimension)


def test_counts_of_the_paper():
    assert lemma1.lemma_budget(sets_of(8, 2), 3) == math.ceil(3 * 8 * math.log(8) * 16)
    assert lemma1.window(sets_of(8, 2), 3) == math.ceil(3 * math.log(8) * 16)
    assert counting_bound(sets_of(8, 4)) == 28 / 6
    assert counting_bound(block_stochastic(8, 4)) == 28 / 12
