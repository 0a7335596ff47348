"""POETLinear: a linear layer whose weight is R W0 P with W0 fixed (Equation (3)).

Orientation. The paper's W is (m inputs, n outputs) and y = W^T x; ``nn.Linear`` stores W^T. R acts on inputs, P on
outputs, so the effective ``nn.Linear`` weight is P^T W0^T R^T. The base weight is stored in the permuted basis
(``poet.primitives``): blocks are contiguous there, and one gather of the finished weight brings it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from poet.config import POETConfig
from poet.factors import batched_factors
from poet.forms import Orders, equivalent_linear
from poet.initialization import INITIALIZATIONS
from poet.kernels.block_transform import block_transform
from poet.kernels.dispatch import AUTOCAST
from poet.merging import merge_layers

if TYPE_CHECKING:
    from poet.step_cache import StepCache


class POETLinear(nn.Module):
    """A drop-in ``nn.Linear`` with weight R W0 P; R and P start at the identity and are all that is trained.

    Parameters: ``skew_r`` and ``skew_p``, (blocks, b(b-1)/2) each, the strictly upper triangles of the skew-symmetric
    matrices (None for an identity side), and ``bias`` (out,) where there is one. Buffers: ``base_weight`` (out, in) in
    the permuted basis, and the permutations ``order_in`` (in,), ``order_out`` (out,) with their inverses.

    Args:
        in_features, out_features: m and n.
        config: see :class:`poet.config.POETConfig`.
        bias: add a trainable bias, zero at the start.
        generator: CPU generator for the initialization and the first primitives.
        weight: (out, in), the weight to start from; needed (and used) with ``config.init == "keep"`` only.

    Raises:
        ValueError: a block size does not divide its dimension, or ``init="keep"`` without a weight.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        config: POETConfig,
        *,
        bias: bool = False,
        generator: torch.Generator | None = None,
        weight: Tensor | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.config = in_features, out_features, config
        self.primitive_r, self.primitive_p = config.primitives(in_features, out_features)
        place = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        for name, primitive in (("skew_r", self.primitive_r), ("skew_p", self.primitive_p)):
            skew = None
            if primitive.blocks:
                skew = nn.Parameter(torch.zeros(primitive.blocks, primitive.parameters // primitive.blocks, **place))
            self.register_parameter(name, skew)
        self.register_parameter("bias", nn.Parameter(torch.zeros(out_features, **place)) if bias else None)
        self.register_buffer("base_weight", torch.empty(out_features, in_features, **place))
        for side, size in (("in", in_features), ("out", out_features)):
            self.register_buffer(f"order_{side}", torch.arange(size, device=device))
            self.register_buffer(f"inverse_{side}", torch.arange(size, device=device))
        self._step_cache: StepCache | None = None
        if config.init == "keep" and weight is None:
            raise ValueError("POETConfig.init='keep' needs the weight to keep: wrap a model with apply_poet")
        if self.base_weight.is_meta:  # shapes are all that is asked for
            return
        if config.init != "keep":
            weight = INITIALIZATIONS[config.init](out_features, in_features, generator)
        self._store(weight.to(self.base_weight), generator)

    @torch.no_grad()
    def _store(self, weight: Tensor, generator: torch.Generator | None) -> None:
        """Take a dense (out, in) weight as the new base under freshly sampled primitives, R = P = I."""
        for primitive, order, inverse in (
            (self.primitive_r, self.order_in, self.inverse_in),
            (self.primitive_p, self.order_out, self.inverse_out),
        ):
            order.copy_(primitive.sample(generator))
            inverse.copy_(order.argsort())
        order_out, _, order_in, _ = self.orders()
        if order_out is not None:
            weight = weight.index_select(0, order_out)
        self.base_weight.copy_(weight if order_in is None else weight.index_select(1, order_in))
        for skew in (self.skew_r, self.skew_p):
            if skew is not None:
                skew.zero_()

    def orders(self) -> Orders:
        """(order_out, inverse_out, order_in, inverse_in); None for an identity side, which is never permuted."""
        rows = (None, None) if self.skew_p is None else (self.order_out, self.inverse_out)
        return *rows, *((None, None) if self.skew_r is None else (self.order_in, self.inverse_in))

    def factors(self) -> tuple[Tensor | None, Tensor | None]:
        """The small orthogonal matrices (G_R, G_P), (blocks, b, b) each, None for an identity side.

        Taken from the model-wide batch during a forward pass of the model.
        """
        if self._step_cache is not None and (shared := self._step_cache.factors(self)) is not None:
            return shared
        terms = self.config.neumann_terms
        return tuple(None if s is None else batched_factors([s], terms)[0] for s in (self.skew_r, self.skew_p))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out), in the dtype of ``x`` (of autocast, where it is on)."""
        device = x.device.type
        if device in AUTOCAST and torch.is_autocast_enabled(device):
            x = x if x.dtype == torch.float64 else x.to(torch.get_autocast_dtype(device))  # as nn.Linear has it
        weight = None if self._step_cache is None else self._step_cache.weight(self)
        if weight is not None:
            return functional.linear(x, weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))
        y = equivalent_linear(x, self.base_weight, *self.factors(), self.orders())
        return y if self.bias is None else y + self.bias.to(y.dtype)

    @property
    def weight(self) -> Tensor:
        """The effective weight, for code that reads ``linear.weight``; built anew at each access."""
        return self.effective_weight()

    def effective_weight(self) -> Tensor:
        """(out, in) dense W_RP as ``nn.Linear`` stores it; differentiable in R and P."""
        order_out, _, order_in, inverse_in = self.orders()
        return block_transform(self.base_weight, *self.factors(), order_out, order_in, inverse_in)

    def rotations(self) -> tuple[Tensor, Tensor]:
        """(R, P), dense (in, in) and (out, out), in the paper's orientation: W_RP = R W0 P."""
        pairs = zip(self.factors(), (self.primitive_r, self.primitive_p), (self.order_in, self.order_out), strict=True)
        return tuple(
            torch.eye(primitive.dimension, dtype=self.base_weight.dtype, device=order.device)
            if blocks is None
            else primitive.embed(blocks, order)
            for blocks, primitive, order in pairs
        )

    def merge_and_reinitialize(self, generator: torch.Generator | None = None) -> None:
        """:func:`poet.merging.merge_layers` of this layer alone."""
        merge_layers([self], generator)

    @torch.no_grad()
    def to_linear(self) -> nn.Linear:
        """A plain ``nn.Linear`` with the effective weight and a copy of the bias."""
        linear = nn.Linear(
            self.in_features,
            self.out_features,
            bias=self.bias is not None,
            device=self.base_weight.device,
            dtype=self.base_weight.dtype,
        )
        linear.weight.copy_(self.effective_weight())
        if self.bias is not None:
            linear.bias.copy_(self.bias)
        return linear

    def _apply(self, fn, recurse: bool = True):
        """``nn.Module``'s way to ``to``, ``cuda``, ``half``: what the cache holds stays where it was, so it goes."""
        if self._step_cache is not None:
            self._step_cache.forget()
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict:
        """A copy of a layer is not a copy of its model; a model's copy finds its layers again."""
        return {**super().__getstate__(), "_step_cache": None}

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, variant={self.config.variant!r}, "
            f"b_in={self.primitive_r.block_size}, b_out={self.primitive_p.block_size}, bias={self.bias is not None}"
        )
