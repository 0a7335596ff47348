"""The interface of a stochastic primitive (Section 3.2.1).

A primitive is a structured orthogonal matrix G of one side of a weight. It acts on positions 0, ..., m-1. A permutation
that it samples maps positions to coordinates. The transform (:mod:`poet.transform`) applies this permutation and its
inverse, so that a primitive sees no coordinates.
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
    """One side's primitive: structure and sizes of G, but no tensor. The layer owns the parameters.

    Attributes:
        dimension: m; G is (m, m).
    """

    dimension: int

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape of the trainable tensor. A tensor of zeros makes G the identity. (0, 0): nothing is trained, and G is always the identity."""

    @property
    @abstractmethod
    def covered(self) -> int:
        """Number of positions that G acts on: the first ones. On the others it is the identity."""

    @property
    def parameters(self) -> int:
        """Number of trainable parameters of this side; Table 1 counts R and P together."""
        return math.prod(self.shape)

    def sample(self, generator: torch.Generator | None) -> Tensor:
        """A random permutation of the coordinates; positions that G does not act on keep the natural order.

        Args:
            generator: CPU generator, or None for torch's global one.

        Returns:
            (m,) int64 on the CPU: position i is coordinate ``permutation[i]``.
        """
        shuffled = torch.randperm(self.dimension, generator=generator, device="cpu")  # not on torch's default device
        if self.covered == self.dimension:
            return shuffled
        return torch.cat((shuffled[: self.covered], shuffled[self.covered :].sort().values))

    @abstractmethod
    def factors(self, packed: Tensor, terms: int | None) -> Tensor:
        """The tensor that :meth:`apply` takes, computed from the parameters once per forward pass.

        Args:
            packed: the parameters, of :attr:`shape`, any floating dtype.
            terms: k of the Cayley-Neumann map (Equation (6)), None for the exact Cayley map, where the primitive has one.

        Returns:
            A tensor of the dtype of ``packed``; its shape is the primitive's own.
        """

    @abstractmethod
    def factors_vjp(self, packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
        """VJP of :meth:`factors`.

        Args:
            packed, terms: the arguments of :meth:`factors`.
            grad: gradient of the loss with respect to the factors, of their shape.

        Returns:
            The gradient with respect to ``packed``, of its shape and dtype.
        """

    def maps_like(self, other: Primitive) -> bool:
        """Whether :meth:`factors` and its VJP map each row of ``packed`` independently, and as those of ``other`` do.

        One call then maps the rows of both sides, which halves the calls of a small layer, or the launches on a GPU.
        """
        return False

    @abstractmethod
    def apply(self, factors: Tensor, x: Tensor, *, transpose: bool = False) -> Tensor:
        """G x, or G^T x where ``transpose``, as a new tensor.

        Args:
            factors: the result of :meth:`factors`, cast to the dtype of ``x``.
            x: (m, s), any strides.

        Returns:
            (m, s), the dtype of ``x``.
        """

    @abstractmethod
    def apply_vjp(self, factors: Tensor, x: Tensor, grad: Tensor, *, transpose: bool = False) -> Tensor:
        """VJP of :meth:`apply` in the factors.

        Args:
            factors, x, transpose: the arguments of :meth:`apply`. Rows of ``x`` and ``grad`` beyond ``covered`` may be missing.
            grad: (m, s), any strides, gradient of the loss with respect to the result.

        Returns:
            The gradient with respect to ``factors``, of their shape and dtype.
        """


class Variant(NamedTuple):
    """A kind of primitive, as ``POETConfig.variant`` names it.

    Attributes:
        options: the fields of :class:`poet.config.POETConfig` that it reads.
        sides: (in_features, out_features, the options by name) -> the primitives of R and of P; ValueError where an option
            does not fit the dimensions.
    """

    options: tuple[str, ...]
    sides: Callable[..., tuple[Primitive, Primitive]]
