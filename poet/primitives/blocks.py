"""Primitives of small orthogonal blocks, each the Cayley map of a skew-symmetric matrix (Equations (4), (5) and (6))."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from poet.orthogonal import packed_size, rotation_blocks, rotation_blocks_vjp
from poet.primitives.contract import Primitive


@dataclass(frozen=True, slots=True)
class BlockPrimitive(Primitive):
    """G = Diag(G_1, ..., G_k, I) on positions: k blocks of size b, one after the other.

    Fully stochastic SPO (Equation (4)) has one block on a random subset of the coordinates. Block-stochastic SPO
    (Equation (5)) has m/b blocks, so that every coordinate is in one.

    Attributes:
        block_size: b. 0 makes G the identity.
        blocks: k, with k * b <= m.
    """

    block_size: int
    blocks: int

    @property
    def shape(self) -> tuple[int, int]:
        """(k, b(b-1)/2): the strictly upper triangle of each block's Q, row by row."""
        return self.blocks, packed_size(self.block_size)

    @property
    def covered(self) -> int:
        return self.blocks * self.block_size

    def factors(self, packed: Tensor, terms: int | None) -> Tensor:
        """The orthogonal blocks, (k, b, b), of packed parameters (k, b(b-1)/2): :func:`poet.orthogonal.rotation_blocks`."""
        return rotation_blocks(packed, terms)

    def factors_vjp(self, packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
        return rotation_blocks_vjp(packed, grad, terms)

    def maps_like(self, other: Primitive) -> bool:
        return isinstance(other, BlockPrimitive) and other.block_size == self.block_size

    def apply(self, factors: Tensor, x: Tensor, *, transpose: bool = False) -> Tensor:
        blocks = factors.mT if transpose else factors
        covered = self.covered
        rotated = torch.bmm(blocks, self._by_block(x)).view(covered, x.shape[1])
        return rotated if covered == x.shape[0] else torch.cat((rotated, x[covered:]))

    def apply_vjp(self, factors: Tensor, x: Tensor, grad: Tensor, *, transpose: bool = False) -> Tensor:
        left, right = (x, grad) if transpose else (grad, x)
        return torch.bmm(self._by_block(left), self._by_block(right).mT)

    def _by_block(self, x: Tensor) -> Tensor:
        """The covered rows of (m, s) as a view (k, b, s)."""
        rows = x if x.shape[0] == self.covered else x[: self.covered]
        return rows.view(self.blocks, self.block_size, x.shape[1])

    def embed(self, blocks: Tensor, permutation: Tensor) -> Tensor:
        """The dense m x m orthogonal matrix of Equation (4) or (5).

        Args:
            blocks: (k, b, b), the small orthogonal matrices.
            permutation: (m,), as :meth:`sample` returns it.

        Returns:
            (m, m) = Psi^T Diag(G_1, ..., G_k, I) Psi with (Psi x)_i = x[permutation[i]].
        """
        diagonal = torch.eye(self.dimension, dtype=blocks.dtype, device=blocks.device)
        diagonal[: self.covered, : self.covered] = torch.block_diag(*blocks)
        inverse = permutation.argsort()
        return diagonal[inverse][:, inverse]
