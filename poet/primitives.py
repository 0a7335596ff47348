"""Stochastic primitives: which coordinates one orthogonal factor acts on (Section 3.2.1, Equations (4) and (5)).

A primitive of an m x m orthogonal matrix is ``blocks`` small orthogonal matrices of size ``block_size``, and a
permutation that brings the coordinates they act on to the front. Fully stochastic SPO has one block on a random subset;
block-stochastic SPO has m/b blocks, so that every coordinate is moved. Both are the same object with other counts, which
is why the layer, the transform and the merge know only :class:`Primitive`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from poet.orthogonal import packed_size


@dataclass(frozen=True, slots=True)
class Primitive:
    """The shape of one side's primitive.

    Attributes:
        dimension: m, the size of the orthogonal matrix.
        block_size: b. 0 means that this side is the identity.
        blocks: number of b x b blocks, blocks * b <= m.
    """

    dimension: int
    block_size: int
    blocks: int

    @property
    def covered(self) -> int:
        """Coordinates that the blocks act on."""
        return self.blocks * self.block_size

    @property
    def parameters(self) -> int:
        """Trainable parameters, blocks * b(b-1)/2 (Table 1)."""
        return self.blocks * packed_size(self.block_size)

    def sample(self, generator: torch.Generator | None) -> Tensor:
        """A permutation of the coordinates, (m,) int64 on the CPU: position i holds coordinate ``permutation[i]``.

        The first ``covered`` positions are what the blocks act on. The rest keeps its natural order, so that an
        identity side is stored unpermuted.
        """
        return self.arrange(self.shuffle(generator)[None])[0]

    def shuffle(self, generator: torch.Generator | None) -> Tensor:
        """The random part of :meth:`sample`, (m,) int64."""
        return torch.randperm(self.dimension, generator=generator)

    def arrange(self, shuffled: Tensor) -> Tensor:
        """What :meth:`sample` makes of shuffles (l, m): where nothing acts, the natural order."""
        if self.covered == self.dimension:
            return shuffled
        return torch.cat((shuffled[:, : self.covered], shuffled[:, self.covered :].sort(1).values), 1)

    def embed(self, blocks: Tensor, permutation: Tensor) -> Tensor:
        """The dense m x m orthogonal matrix of Equation (4) or (5).

        Args:
            blocks: (blocks, b, b), the small orthogonal matrices.
            permutation: (m,), as :meth:`sample` returns it.

        Returns:
            (m, m) = Psi^T Diag(G_1, ..., G_k, I) Psi with (Psi x)_i = x[permutation[i]].
        """
        diagonal = torch.eye(self.dimension, dtype=blocks.dtype, device=blocks.device)
        diagonal[: self.covered, : self.covered] = torch.block_diag(*blocks)
        inverse = permutation.argsort()
        return diagonal[inverse][:, inverse]


def fully_stochastic(dimension: int, budget: float) -> Primitive:
    """Fully stochastic SPO, Equation (4): one block on a random subset of b = budget * m coordinates.

    Raises:
        ValueError: the budget is outside [0, 1], or so small that the block has fewer than two coordinates.
    """
    if not 0 <= budget <= 1:
        raise ValueError(f"a POET budget is a share of the dimension, between 0 and 1; got {budget}")
    block_size = round(budget * dimension)
    if budget == 0:
        return Primitive(dimension, 0, 0)
    if block_size < 2:
        raise ValueError(f"budget {budget} of dimension {dimension} leaves no 2 x 2 block: use a larger one, or 0")
    return Primitive(dimension, block_size, 1)


def split_budget(in_features: int, out_features: int, budget: float, share_r: float) -> tuple[Primitive, Primitive]:
    """Fully stochastic primitives of R and P that share a constant number of parameters (Section 4, Figure 5).

    The total is that of b_in = budget * m and b_out = budget * n; R's block gets ``share_r`` of it and P's the rest,
    each as near as a whole block size comes.

    Raises:
        ValueError: the budget is outside [0, 1], or a block would be larger than its dimension.
    """
    dimensions = (in_features, out_features)
    total = sum(fully_stochastic(dimension, budget).parameters for dimension in dimensions)
    found = []
    for dimension, share in zip(dimensions, (share_r, 1 - share_r), strict=True):
        block_size = round((1 + math.sqrt(1 + 8 * share * total)) / 2)
        if block_size > dimension:
            raise ValueError(
                f"a share of {share:g} of budget {budget:g} is a block of {block_size}, more than dimension {dimension}: "
                "use a smaller budget"
            )
        found.append(Primitive(dimension, block_size, 1) if block_size > 1 else Primitive(dimension, 0, 0))
    return found[0], found[1]


def block_stochastic(dimension: int, block_size: int) -> Primitive:
    """Block-stochastic SPO, Equation (5): m/b blocks under a random permutation; block size 0 is the identity.

    Raises:
        ValueError: the block size is below 2 (and not 0), or does not divide the dimension.
    """
    if block_size == 0:
        return Primitive(dimension, 0, 0)
    if block_size < 2:
        raise ValueError(f"POET block size {block_size} rotates nothing: use 2 or more, or 0 for the identity")
    if dimension % block_size:
        raise ValueError(
            f"POET block size {block_size} does not divide dimension {dimension}: choose a divisor of it, or variant='fs'"
        )
    return Primitive(dimension, block_size, dimension // block_size)
