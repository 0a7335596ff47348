"""What a stochastic primitive has to say of itself (Section 3.2.1).

A primitive is a structured orthogonal matrix G of one side of a weight. It acts on positions 0, ..., m-1; a permutation
that it samples says which coordinate each position is. The transform (:mod:`poet.transform`) moves coordinates to
positions and back, so that a primitive sees none of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Primitive(ABC):
    """One side's primitive.

    Attributes:
        dimension: m, the size of G.
    """

    dimension: int

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape of the trainable tensor. Where that is zero G is the identity; (0, 0): it is the identity for good."""

    @property
    @abstractmethod
    def covered(self) -> int:
        """How many positions G moves: the first ones."""

    @property
    def parameters(self) -> int:
        """Number of trainable parameters (Table 1)."""
        return math.prod(self.shape)

    def sample(self, generator: torch.Generator | None) -> Tensor:
        """A permutation of the coordinates, (m,) int64 on the CPU: position i holds coordinate ``permutation[i]``.

        Positions that G does not move keep the natural order.
        """
        shuffled = torch.randperm(self.dimension, generator=generator)
        if self.covered == self.dimension:
            return shuffled
        return torch.cat((shuffled[: self.covered], shuffled[self.covered :].sort().values))

    @abstractmethod
    def factors(self, packed: Tensor, terms: int | None) -> Tensor:
        """What :meth:`apply` needs of the parameters, computed once a call.

        Args:
            packed: of :attr:`shape`.
            terms: k of the Cayley-Neumann map, None for the exact one, where the primitive has such a map.
        """

    @abstractmethod
    def factors_vjp(self, packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
        """Gradient by ``packed``, given the gradient ``grad`` by :meth:`factors`, and of its shape."""

    def maps_like(self, other: Primitive) -> bool:
        """Whether :meth:`factors` and its VJP treat each row of ``packed`` alone, and as ``other`` would.

        Rows of both sides then go through one call: half the calls of a small layer, half the launches on a GPU.
        """
        return False

    @abstractmethod
    def apply(self, factors: Tensor, x: Tensor, *, transpose: bool = False) -> Tensor:
        """G x, or G^T x, as a new tensor.

        Args:
            factors: what :meth:`factors` returned, of the dtype of ``x``.
            x: (m, s), any strides.
        """

    @abstractmethod
    def apply_vjp(self, factors: Tensor, x: Tensor, grad: Tensor, *, transpose: bool = False) -> Tensor:
        """Gradient by ``factors`` of a loss whose gradient by :meth:`apply` is ``grad``.

        Args:
            factors, x, transpose: of the call. Rows of ``x`` and ``grad`` beyond ``covered`` may be missing.
            grad: (m, s), any strides.
        """


class Variant(NamedTuple):
    """A kind of primitive, as ``POETConfig.variant`` names it.

    Attributes:
        options: the fields of :class:`poet.config.POETConfig` that it reads.
        sides: (in_features, out_features, the options by name) -> the primitives of R and of P.
    """

    options: tuple[str, ...]
    sides: Callable[..., tuple[Primitive, Primitive]]
