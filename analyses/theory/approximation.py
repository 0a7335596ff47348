"""What Lemma 1, its proof and its heuristic state (Section 4, Appendix D), measured on sampled sets.

Two intervals are not those of :mod:`analyses.theory.statements`: a residual may deviate by the rounding of its product,
(number of primitives) sqrt(m) eps, and a rank must be exact in every draw. ``published`` is

- for the probability of failure with the sets of the proof's windows, of the lemma or of the heuristic at alpha: m^-(alpha-2);
- for the mean number of primitives, from above: (2 + 1/ln m) m ln(m) (m/b)^2, which follows from the lemma's tail by integrating
  min(1, m^-(alpha-2)) over alpha; and from below: the free parameters of R over those of a primitive.
"""

import math

import numpy as np
import torch

from analyses.theory.lemma1 import (
    expected_needed, factorize, lemma_budget, pair_probability, pairs_missed, primitives_needed, tangent_rank, window,
    windows_fail, windows_failure,
)
from analyses.theory.random_matrices import random_orthogonal
from analyses.theory.statements import Measured, frequency_of, line, mean_of
from poet.orthogonal import packed_size
from poet.primitives import BlockPrimitive, block_stochastic

LEMMA, PROOF, HEURISTIC = "Section 4, Lemma 1", "Appendix D, proof of Lemma 1", "Appendix D, heuristic after the proof"
WINDOWS = "a column is finished within alpha ln(m) (m/b)^2 sets"
PAIRS = "alpha ln(m) (m/b)^2 sets hold every pair"
ENOUGH = "c >= alpha m ln(m) (m/b)^2 sets are enough"
NEEDED = "primitives that the construction needs"
ONTO = "primitives until D Phi is onto"
PRODUCT = "any orthogonal R is a product of primitives"
EXPRESSIVE = "block-stochastic SPO is more expressive"
TANGENT = "D Phi at the identity is onto if every pair is in a set"
#: The count that a number of primitives is compared with, as ``quantity`` names it.
BY_LEMMA, BY_COUNT = "mean number, against the lemma's", "mean number, against the count of parameters"
#: An alpha at which the printed bound, m^-(alpha-2), is below 1: it is 1/m.
ALPHA = 3.0


def sets_of(dimension: int, block_size: int) -> BlockPrimitive:
    """A fully stochastic primitive with a given block size."""
    return BlockPrimitive(dimension, block_size, 1)


def setting(primitive: BlockPrimitive, *more: str) -> str:
    kind = "" if primitive.blocks == 1 else "block-stochastic"
    return " ".join(filter(None, (f"m={primitive.dimension} b={primitive.block_size}", kind, *more)))


def counting_bound(primitive: BlockPrimitive) -> float:
    """Free parameters of an m x m orthogonal matrix over those of one primitive."""
    return packed_size(primitive.dimension) / primitive.parameters


def factorizations(rng: np.random.Generator, generator: torch.Generator) -> list[dict]:
    """Lines on factorizations of random orthogonal matrices, and on the last diagonal entry, which the proof leaves out."""
    lines = []
    shapes = ((8, 2, 10), (8, 4, 10), (16, 4, 5), (32, 8, 3), (32, 16, 3))
    for primitive, count in [(sets_of(m, b), n) for m, b, n in shapes] + [(block_stochastic(32, 8), 5)]:
        worst, steps = 0.0, 0
        for _ in range(count):
            matrix = random_orthogonal(primitive.dimension, rng)
            found = factorize(matrix, primitive, generator)
            worst = max(worst, float(torch.linalg.matrix_norm(found.product() - matrix)))
            steps = max(steps, len(found.steps))
        rounding = steps * math.sqrt(primitive.dimension) * np.finfo(float).eps
        measured = Measured.around(worst, rounding, count)
        lines.append(line(PRODUCT, LEMMA, setting(primitive),
                          "largest Frobenius norm of G_c ... G_1 - R", measured, published=0.0))
    small = sets_of(6, 3)
    matrices = [random_orthogonal(6, rng) for _ in range(120)]
    last = np.array([factorize(r, small, generator, mend_sign=False).last_entry for r in matrices])
    determinants = np.array([float(torch.linalg.det(r)) for r in matrices])
    statement = "P^m = I: non-negative diagonal after m-1 columns"
    lines.append(line(statement, PROOF, setting(small, "rotations, Haar R"), "share of R whose last diagonal entry is -1",
                      frequency_of(last < 0), published=0.0, derived=0.5))
    lines.append(line(statement, PROOF, setting(small, "rotations, Haar R"), "largest |last diagonal entry - det R|",
                      Measured.around(np.abs(last - determinants).max(), 0.0, len(last)), derived=0.0))
    return lines


def budgets(rng: np.random.Generator, generator: torch.Generator) -> list[dict]:
    """Lines on the probability that a pair shares a set, and on failures of the proof, the heuristic and the lemma at alpha = 3."""
    lines = []
    for m, b in ((8, 2), (8, 4), (16, 4)):
        primitive = sets_of(m, b)
        sampled = torch.stack([primitive.sample(generator)[:b] for _ in range(12000)])
        both = (sampled == 0).any(1) & (sampled == 1).any(1)
        lines.append(line("P(k, l in no set) <= (1 - b^2/m^2)^c", PROOF, setting(primitive), "P(k, l in one set)",
                          frequency_of(both.numpy()), published=(b / m) ** 2, relation=">=",
                          derived=pair_probability(primitive), derived_relation="="))
    # Enough trials to tell the exact probability from the printed bound where the two differ by half.
    shapes = ((8, 2, 600), (8, 4, 2000), (16, 2, 100), (16, 4, 1500), (16, 8, 2000), (32, 4, 250), (32, 16, 500))
    for m, b, trials in shapes:
        primitive, bound = sets_of(m, b), float(m) ** (2 - ALPHA)
        where, count = setting(primitive, f"alpha={ALPHA:g}"), window(primitive, ALPHA)
        lines.append(line(WINDOWS, PROOF, where, "share of trials with a column unfinished",
                          frequency_of(windows_fail(primitive, ALPHA, trials, rng)), published=bound, relation="<=",
                          derived=windows_failure(primitive, ALPHA), derived_relation="="))
        missed = pairs_missed(primitive, count, 4 * trials, rng) > 0
        union = packed_size(m) * (1 - pair_probability(primitive)) ** count
        lines.append(line(PAIRS, HEURISTIC, where, "share of trials with a pair in no set", frequency_of(missed),
                          published=bound, relation="<=", derived=min(1.0, union)))
    for m, b, trials in ((8, 2, 500), (8, 4, 1000), (16, 4, 300)):
        primitive = sets_of(m, b)
        taken = np.array([primitives_needed(primitive, rng) for _ in range(trials)])
        taken = taken + rng.binomial(1, 0.5, trials) * rng.geometric(b / m, trials)  # where det R = -1, the last sign needs a set with m
        lines.append(line(ENOUGH, LEMMA, setting(primitive, f"alpha={ALPHA:g}"),
                          "share of trials that need more, each column taking what it needs",
                          frequency_of(taken > lemma_budget(primitive, ALPHA)),
                          published=float(m) ** (2 - ALPHA), relation="<="))
    return lines


def needed(rng: np.random.Generator) -> list[dict]:
    """Lines on the primitives that the construction needs for its m-1 columns, against the lemma's and the parameters' count."""
    lines, means = [], {}
    shapes = [(sets_of(m, m // 4), 40) for m in (8, 16, 32, 64)] + [(sets_of(m, 4), 20) for m in (8, 16, 32)]
    shapes += [(sets_of(m, 2), 20) for m in (8, 16)] + [(block_stochastic(m, m // 4), 40) for m in (8, 16, 32, 64)]
    for primitive, trials in dict(shapes[::-1]).items():
        m, b, where = primitive.dimension, primitive.block_size, setting(primitive)
        measured = mean_of(np.array([primitives_needed(primitive, rng) for _ in range(trials)], dtype=float))
        means[primitive] = measured
        ceiling = (2 + 1 / math.log(m)) * m * math.log(m) * (m / b) ** 2
        lines.append(line(NEEDED, LEMMA, where, BY_LEMMA, measured, published=ceiling,
                          relation="<=", derived=expected_needed(primitive), derived_relation="=", unit="primitives"))
        lines.append(line(NEEDED, LEMMA, where, BY_COUNT, measured,
                          published=counting_bound(primitive), relation=">=", unit="primitives"))
    for m in (8, 16, 32, 64):
        fully, blocks = means[sets_of(m, m // 4)], means[block_stochastic(m, m // 4)]
        ratio, error = blocks.value / fully.value, math.hypot(*((x.high - x.value) / x.value for x in (fully, blocks)))
        lines.append(line(EXPRESSIVE, LEMMA, f"m={m} b={m // 4}",
                          "primitives needed, block-stochastic over fully stochastic",
                          Measured.around(ratio, ratio * error, blocks.n), published=1.0, relation="<=",
                          derived=1 / 4, derived_relation="="))
    return lines


def ranks(rng: np.random.Generator, generator: torch.Generator) -> list[dict]:
    """Lines on the rank of D Phi at the identity, which the heuristic considers, and at random primitives."""
    lines = []
    for primitive in (sets_of(6, 3), sets_of(8, 2), sets_of(8, 4), sets_of(12, 4), block_stochastic(8, 4)):
        full, fewest = packed_size(primitive.dimension), math.ceil(counting_bound(primitive))
        identity = torch.eye(primitive.block_size, dtype=torch.float64).repeat(primitive.blocks, 1, 1)
        errors, counts = [], {"the identity": [], "random primitives": []}
        for _ in range(20):
            met, sets, before = set(), [], 0
            while len(met) < full:
                before = len(met)
                sets.append(primitive.sample(generator))
                for members in sets[-1][: primitive.covered].view(primitive.blocks, -1).tolist():
                    met.update((k, l) for k in members for l in members if k < l)
            still = [(identity, permutation) for permutation in sets]
            errors += [tangent_rank(primitive, still) - full, tangent_rank(primitive, still[:-1]) - before]
            moving = [(torch.stack([random_orthogonal(primitive.block_size, rng) for _ in range(primitive.blocks)]),
                       permutation) for permutation in sets]
            counts["the identity"].append(len(sets))
            counts["random primitives"].append(
                next((c for c in range(1, len(sets)) if tangent_rank(primitive, moving[:c]) == full), len(sets)))
        lines.append(line(TANGENT, HEURISTIC, setting(primitive),
                          "largest |rank - pairs met|, with the last set and without",
                          Measured.around(np.abs(errors).max(), 0.0, len(errors)), published=0.0))
        for point, found in counts.items():
            lines.append(line(ONTO, HEURISTIC, setting(primitive, f"at {point}"),
                              BY_COUNT, mean_of(np.array(found, dtype=float)),
                              published=fewest, relation=">=", unit="primitives"))
    return lines


def lines() -> list[dict]:
    """Every line about Lemma 1."""
    rng, generator = np.random.default_rng(1), torch.Generator().manual_seed(1)
    return [*factorizations(rng, generator), *budgets(rng, generator), *needed(rng), *ranks(rng, generator)]
