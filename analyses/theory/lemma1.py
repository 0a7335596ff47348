"""Lemma 1 made constructive: an orthogonal matrix as a product of sampled primitives, and the chances that it takes.

The proof (Appendix D) multiplies R^T by primitives until it is the identity, one column after another: of the sampled
sets, those that contain k rotate the entries of column k at or below row k onto row k. Column k is finished when k has
shared a set with every l > k; sets without k are wasted (G_j = I). Two readings of it are here: :func:`factorize` turns
to the next column as soon as one is finished, :func:`windows_fail` gives each column the fixed number of sets that the
proof does. Coordinates count from 0 in the code.

Three things the printed proof leaves open, and what is done here:

- The last diagonal entry. The induction ends at column m-1 and so says nothing of the entry (m, m). If the small
  matrices are rotations, as printed ("there is a rotation Q"), that entry is det(R), and a matrix of determinant -1
  ends at Diag(1, ..., 1, -1). One more primitive, whose block is Diag(1, ..., 1, -1) on a set that contains m, mends
  it; its determinant is -1, so a Cayley map cannot give it.
- A set whose largest element is k: a rotation of one coordinate is 1 and leaves a negative entry negative. Nothing is
  lost by G_j = I there, since a set with an l > k has made the entry non-negative or will.
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
    """p: chance that one primitive's blocks bring two given coordinates together."""
    return primitive.covered / primitive.dimension * (primitive.block_size - 1) / (primitive.dimension - 1)


def window(primitive: BlockPrimitive, alpha: float) -> int:
    """Sets that the proof gives each column, and the heuristic all of them: alpha ln(m) (m/b)^2, rounded up."""
    m, b = primitive.dimension, primitive.block_size
    return math.ceil(alpha * math.log(m) * (m / b) ** 2)


def lemma_budget(primitive: BlockPrimitive, alpha: float) -> int:
    """The lemma's c: alpha m ln(m) (m/b)^2, rounded up."""
    m, b = primitive.dimension, primitive.block_size
    return math.ceil(alpha * m * math.log(m) * (m / b) ** 2)


# --- the factorization ------------------------------------------------------------------------------------------------


def rotation_to_first_axis(vector: Tensor) -> Tensor:
    """A rotation Q (determinant 1) with Q v = |v| e_1, for v of two or more entries; the identity if v is 0."""
    norm, size = vector.norm(), vector.numel()
    rotation = torch.eye(size, dtype=vector.dtype)
    if norm == 0:
        return rotation
    # Householder towards the axis that v points away from, so that nothing cancels; a second reflection makes it a
    # rotation: of the first axis if v was sent to -|v| e_1, of another one if it was sent to |v| e_1.
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
    #: (blocks, permutation) of every G_j that is not the identity, as applied; see ``BlockPrimitive.embed``
    steps: list[tuple[Tensor, Tensor]]
    sampled: int  # c, sets sampled in all
    last_entry: float  # entry (m, m) of G ... G R^T before the step that makes it positive.

    def product(self) -> Tensor:
        """G_c ... G_1, (m, m), from the embedded primitives alone."""
        result = torch.eye(self.primitive.dimension, dtype=torch.float64)
        for blocks, permutation in self.steps:
            result = self.primitive.embed(blocks, permutation) @ result
        return result


def factorize(matrix: Tensor, primitive: BlockPrimitive, generator: torch.Generator, *, mend_sign: bool = True) -> Factorization:
    """Factorize an orthogonal matrix (m, m), fp64, as the proof does, with sets sampled one after another.

    Of a block-stochastic primitive only the block that contains k is used, as the lemma's text has it ("strictly more
    expressive"). ``mend_sign`` goes on after column m-1 until the last diagonal entry is positive."""
    m, b = primitive.dimension, primitive.block_size
    rest = matrix.T.clone()
    steps: list[tuple[Tensor, Tensor]] = []
    sampled = 0

    def sample(k: int) -> tuple[Tensor, int] | None:
        """A new permutation with ascending blocks, and the block that has k; None if none has."""
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
            first = int((members < k).sum())  # of the block's coordinates, these are finished and stay as they are
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


# --- the sets alone ---------------------------------------------------------------------------------------------------


def labels(primitive: BlockPrimitive, count: int, rng: np.random.Generator) -> np.ndarray:
    """Which block each coordinate falls into, (count, m) ints, -1 for none: ``count`` draws of
    :meth:`BlockPrimitive.sample` at once."""
    place = rng.permuted(np.tile(np.arange(primitive.dimension, dtype=np.int16), (count, 1)), axis=1)
    return np.where(place < primitive.covered, place // primitive.block_size, -1)


def together(sets: np.ndarray, k: int) -> np.ndarray:
    """Whether k and each l > k are in one block: (..., m) labels -> (..., m-k-1) bool."""
    own = sets[..., k, None]
    return (sets[..., k + 1 :] == own) & (own >= 0)


def primitives_needed(primitive: BlockPrimitive, rng: np.random.Generator) -> int:
    """How many sets :func:`factorize` samples for the first m-1 columns, without a matrix: only the sets matter."""
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


# --- what the sets' chances are exactly -------------------------------------------------------------------------------


def never_with(primitive: BlockPrimitive, others: int) -> Fraction:
    """Chance that one primitive brings k together with none of ``others`` given coordinates."""
    m, b = primitive.dimension, primitive.block_size
    alone = Fraction(math.comb(m - 1 - others, b - 1), math.comb(m - 1, b - 1))
    return 1 - Fraction(primitive.covered, m) * (1 - alone)


def column_failure(primitive: BlockPrimitive, others: int, count: int) -> float:
    """Chance that k misses at least one of ``others`` coordinates in ``count`` primitives: inclusion and exclusion."""
    # As fractions: the terms alternate, and are as large as binomial coefficients.
    return float(sum((-1) ** (j + 1) * math.comb(others, j) * never_with(primitive, j) ** count for j in range(1, others + 1)))


def windows_failure(primitive: BlockPrimitive, alpha: float) -> float:
    """Exact chance of :func:`windows_fail`."""
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
