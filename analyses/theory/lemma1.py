"""Lemma 1 made constructive: an orthogonal matrix as a product of sampled primitives, and the probabilities involved.

The proof (Appendix D) multiplies R^T by primitives until it is the identity, one column after another. In column k, a sampled
set that contains k rotates the set's entries at or below row k onto row k. A set without k is wasted (G_j = I). The column is
finished when k has shared a set with every l > k. The code has two versions: :func:`factorize` goes to the next column as soon
as one is finished, and :func:`windows_fail` gives each column the fixed number of sets of the proof. Coordinates count from 0
in the code.

Three things the printed proof leaves open, and what is done here:

- The last diagonal entry. The induction ends at column m-1 and so says nothing of the entry (m, m). If the small
  matrices are rotations, as printed ("there is a rotation Q"), that entry is det(R), and a matrix of determinant -1
  ends at Diag(1, ..., 1, -1). One more primitive, whose block is Diag(1, ..., 1, -1) on a set that contains m, mends
  it; its determinant is -1, so a Cayley map cannot give it.
- A set whose largest element is k. A rotation of one coordinate is 1, so a negative entry stays negative. The code takes
  G_j = I there. Nothing is lost, since some set with an l > k makes the entry non-negative.
- Counting. k and l share a set with probability p = b(b-1)/(m(m-1)) < b^2/m^2, so that the printed
  P(never together) <= (1 - b^2/m^2)^c has the wrong direction. The union bounds hold with p: m^(-alpha t + 2) with
  t = p m^2/b^2 = (1 - 1/b)/(1 - 1/m), which is 1/2 at b = 2 and 1 - 1/b for m >> b.
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from poet.primitives import BlockPrimitive


def pair_probability(primitive: BlockPrimitive) -> float:
    """p: probability that two given coordinates fall into the same block of a primitive."""
    return primitive.covered / primitive.dimension * (primitive.block_size - 1) / (primitive.dimension - 1)


def window(primitive: BlockPrimitive, alpha: float) -> int:
    """Number of sets for each column in the proof, for all columns in the heuristic: alpha ln(m) (m/b)^2, rounded up."""
    m, b = primitive.dimension, primitive.block_size
    return math.ceil(alpha * math.log(m) * (m / b) ** 2)


def lemma_budget(primitive: BlockPrimitive, alpha: float) -> int:
    """The lemma's c: alpha m ln(m) (m/b)^2, rounded up."""
    m, b = primitive.dimension, primitive.block_size
    return math.ceil(alpha * m * math.log(m) * (m / b) ** 2)


def rotation_to_first_axis(vector: Tensor) -> Tensor:
    """A rotation Q (determinant 1) with Q v = |v| e_1, for v of two or more entries; the identity if v is 0."""
    norm, size = vector.norm(), vector.numel()
    rotation = torch.eye(size, dtype=vector.dtype)
    if norm == 0:
        return rotation
    # A Householder reflection onto the half of the first axis that v points away from, so that nothing cancels. A second one makes
    # it a rotation: it flips the first axis if v was sent to -|v| e_1, the second if v was sent to |v| e_1.
    flipped = bool(vector[0] > 0)
    normal = vector.clone()
    normal[0] += norm if flipped else -norm
    rotation -= 2 * torch.outer(normal, normal) / normal.square().sum()
    rotation[0 if flipped else 1] *= -1
    return rotation


@dataclass(frozen=True, slots=True)
class Factorization:
    """R = G_c ... G_1, up to rounding."""

    primitive: BlockPrimitive  # shape of the G_j
    #: (blocks, permutation) of every G_j that is not the identity, in order; see ``BlockPrimitive.embed``
    steps: list[tuple[Tensor, Tensor]]
    sampled: int  # c, number of sets sampled
    last_entry: float  # entry (m, m) of G ... G R^T after column m-1, before its sign is mended

    def product(self) -> Tensor:
        """G_c ... G_1, (m, m), from the embedded primitives alone."""
        result = torch.eye(self.primitive.dimension, dtype=torch.float64)
        for blocks, permutation in self.steps:
            result = self.primitive.embed(blocks, permutation) @ result
        return result


def factorize(matrix: Tensor, primitive: BlockPrimitive, generator: torch.Generator, *, mend_sign: bool = True) -> Factorization:
    """Factorize an orthogonal matrix (m, m), fp64, as the proof does, with sets sampled one after another.

    Of a block-stochastic primitive only the block that contains k is used, as in the lemma's text ("strictly more
    expressive"). With ``mend_sign``, sampling continues after column m-1 until the last diagonal entry is positive."""
    m, b = primitive.dimension, primitive.block_size
    rest = matrix.T.clone()
    steps: list[tuple[Tensor, Tensor]] = []
    sampled = 0

    def sample(k: int) -> tuple[Tensor, int] | None:
        """A new permutation with ascending blocks, and the index of the block with k; None if no block has k."""
        permutation = primitive.sample(generator)
        blocks = permutation[: primitive.covered].view(-1, b).sort(dim=1).values
        found = (blocks == k).any(1).nonzero()
        if not len(found):
            return None
        return torch.cat((blocks.flatten(), permutation[primitive.covered :])), int(found)

    def apply(block: Tensor, permutation: Tensor, position: int) -> None:
        members = permutation[position * b : (position + 1) * b]
        rest[members] = block @ rest[members]
        blocks = torch.eye(b, dtype=block.dtype).repeat(primitive.blocks, 1, 1)
        blocks[position] = block
        steps.append((blocks, permutation))

    for k in range(m - 1):
        waiting = set(range(k + 1, m))
        while waiting:
            sampled += 1
            if (drawn := sample(k)) is None:
                continue
            permutation, position = drawn
            members = permutation[position * b : (position + 1) * b]
            first = int((members < k).sum())  # how many of the block's coordinates are finished and stay as they are
            if first == b - 1:
                continue
            block = torch.eye(b, dtype=rest.dtype)
            block[first:, first:] = rotation_to_first_axis(rest[members[first:], k])
            apply(block, permutation, position)
            waiting.difference_update(members[first + 1 :].tolist())
    last_entry = float(rest[-1, -1])
    while mend_sign and rest[-1, -1] < 0:
        sampled += 1
        if (drawn := sample(m - 1)) is not None:
            block = torch.eye(b, dtype=rest.dtype)
            block[-1, -1] = -1
            apply(block, *drawn)
    return Factorization(primitive, steps, sampled, last_entry)


def labels(primitive: BlockPrimitive, count: int, rng: np.random.Generator) -> np.ndarray:
    """Index of each coordinate's block in ``count`` draws of :meth:`BlockPrimitive.sample`, (count, m) ints, -1 for no block."""
    place = rng.permuted(np.tile(np.arange(primitive.dimension, dtype=np.int16), (count, 1)), axis=1)
    return np.where(place < primitive.covered, place // primitive.block_size, -1)


def together(sets: np.ndarray, k: int) -> np.ndarray:
    """Whether k and each l > k are in one block: (..., m) labels -> (..., m-k-1) bool."""
    own = sets[..., k, None]
    return (sets[..., k + 1 :] == own) & (own >= 0)


def primitives_needed(primitive: BlockPrimitive, rng: np.random.Generator) -> int:
    """Number of sets that :func:`factorize` samples for the first m-1 columns, which does not depend on the matrix."""
    chunk = math.ceil(4 / pair_probability(primitive))
    sets, used = labels(primitive, chunk, rng), 0
    for k in range(primitive.dimension - 1):
        while not (met := together(sets, k)).any(0).all():
            sets = np.concatenate((sets, labels(primitive, chunk, rng)))
        taken = int(met.argmax(0).max()) + 1
        sets, used = sets[taken:], used + taken
    return used


def windows_fail(primitive: BlockPrimitive, alpha: float, trials: int, rng: np.random.Generator) -> np.ndarray:
    """Whether the proof's fixed windows leave some column unfinished, (trials,) bool."""
    failed = np.zeros(trials, dtype=bool)
    for k in range(primitive.dimension - 1):
        sets = labels(primitive, trials * window(primitive, alpha), rng).reshape(trials, -1, primitive.dimension)
        failed |= ~together(sets, k).any(1).all(1)
    return failed


def pairs_missed(primitive: BlockPrimitive, count: int, trials: int, rng: np.random.Generator) -> np.ndarray:
    """How many pairs of coordinates never meet in ``count`` fully stochastic sets, (trials,) int."""
    inside = (labels(primitive, trials * count, rng) == 0).reshape(trials, count, -1).astype(np.float32)
    return np.triu(inside.transpose(0, 2, 1) @ inside == 0, 1).sum((1, 2))


def tangent_rank(primitive: BlockPrimitive, steps: list[tuple[Tensor, Tensor]]) -> int:
    """Rank of D Phi, Phi(G_1, ..., G_c) = G_1 ... G_c, at the (blocks, permutation) of each G_j, as a map into Skew(m).

    Moved back to the identity, the directions of G_j are A_j X A_j^T with A_j = G_1 ... G_j and X skew on one block."""
    m = primitive.dimension
    frame, directions = torch.eye(m, dtype=torch.float64), []
    upper = torch.triu_indices(m, m, offset=1)
    for blocks, permutation in steps:
        frame = frame @ primitive.embed(blocks, permutation)
        for members in permutation[: primitive.covered].view(-1, primitive.block_size):
            left, right = frame[:, members[torch.triu_indices(len(members), len(members), offset=1)]].unbind(1)
            directions.append(left[upper[0]] * right[upper[1]] - left[upper[1]] * right[upper[0]])
    return int(torch.linalg.matrix_rank(torch.cat(directions, dim=1)))


def never_with(primitive: BlockPrimitive, others: int) -> Fraction:
    """Probability that k shares its block in one primitive with none of ``others`` given coordinates."""
    m, b = primitive.dimension, primitive.block_size
    alone = Fraction(math.comb(m - 1 - others, b - 1), math.comb(m - 1, b - 1))
    return 1 - Fraction(primitive.covered, m) * (1 - alone)


def column_failure(primitive: BlockPrimitive, others: int, count: int) -> float:
    """Probability that k never meets at least one of ``others`` coordinates in ``count`` primitives, by inclusion and exclusion."""
    # Exact fractions, because the terms alternate in sign and are as large as binomial coefficients.
    return float(sum((-1) ** (j + 1) * math.comb(others, j) * never_with(primitive, j) ** count for j in range(1, others + 1)))


def windows_failure(primitive: BlockPrimitive, alpha: float) -> float:
    """Exact probability that a trial of :func:`windows_fail` fails."""
    m, count = primitive.dimension, window(primitive, alpha)
    kept = (1 - column_failure(primitive, others, count) for others in range(1, m))
    return 1 - math.prod(kept)


@functools.cache
def expected_needed(primitive: BlockPrimitive) -> float:
    """Exact mean of :func:`primitives_needed`."""
    m = primitive.dimension
    terms = (
        (-1) ** (j + 1) * math.comb(others, j) / (1 - never_with(primitive, j))
        for others in range(1, m)
        for j in range(1, others + 1)
    )
    return float(sum(terms))
