"""POETLinear: a linear layer whose weight is R W0 P with W0 fixed (Equation (3)).

Orientation. The paper's W is (m inputs, n outputs) and y = W^T x; ``nn.Linear`` stores W^T. R acts on inputs, P on
outputs, so the effective ``nn.Linear`` weight is P^T W0^T R^T. The base weight is stored in the permuted basis
(``poet.primitives``): blocks are contiguous there, and one gather of the finished weight brings it back.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from poet.config import POETConfig
from poet.factors import FactorCache, batched_factors, full_precision, orthogonal_factors
from poet.initialization import INITIALIZATIONS
from poet.kernels.block_transform import block_transform, block_transform_pullback


def _gather(weight: Tensor, rows: Tensor | None, columns: Tensor | None) -> Tensor:
    """weight[rows][:, columns]; None leaves a side as it is."""
    if rows is not None:
        weight = weight.index_select(0, rows)
    return weight if columns is None else weight.index_select(1, columns)


class _EquivalentLinear(torch.autograd.Function):
    """y = x W_RP^T with W_RP built for the call and built again in backward: nothing of size m*n is saved."""

    @staticmethod
    def forward(ctx, x, weight, g_r, g_p, order_in, order_out, inverse_in, inverse_out):
        ctx.save_for_backward(x, weight, g_r, g_p, order_in, order_out, inverse_in, inverse_out)
        with full_precision(x.device.type):
            effective = _gather(block_transform(weight, g_r, g_p), inverse_out, inverse_in)
        return x @ effective.to(x.dtype).mT

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_y):
        x, weight, g_r, g_p, order_in, order_out, inverse_in, inverse_out = ctx.saved_tensors
        grad_x = grad_r = grad_p = None
        with full_precision(grad_y.device.type):
            if ctx.needs_input_grad[0]:
                effective = _gather(block_transform(weight, g_r, g_p), inverse_out, inverse_in)
                grad_x = grad_y @ effective.to(x.dtype)
            if any(ctx.needs_input_grad[2:4]):
                grad_weight = grad_y.reshape(-1, grad_y.shape[-1]).mT @ x.reshape(-1, x.shape[-1])
                grad_weight = _gather(grad_weight.to(weight.dtype), order_out, order_in)
                grad_r, grad_p = block_transform_pullback(weight, g_r, g_p, grad_weight)
        return grad_x, None, grad_r, grad_p, None, None, None, None


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
        self._factor_cache: FactorCache | None = None
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
        self.base_weight.copy_(_gather(weight, *self._orders()))
        for skew in (self.skew_r, self.skew_p):
            if skew is not None:
                skew.zero_()

    def _orders(self) -> tuple[Tensor | None, Tensor | None]:
        """Permutations (rows, columns) that take a dense weight to the permuted basis; None for an identity side."""
        return (self.order_out if self.skew_p is not None else None), (
            self.order_in if self.skew_r is not None else None
        )

    def _inverse_orders(self) -> tuple[Tensor | None, Tensor | None]:
        """Permutations (rows, columns) that take a permuted weight back."""
        return (self.inverse_out if self.skew_p is not None else None), (
            self.inverse_in if self.skew_r is not None else None
        )

    def factors(self) -> tuple[Tensor | None, Tensor | None]:
        """The small orthogonal matrices (G_R, G_P), (blocks, b, b) each, None for an identity side.

        Taken from the model-wide batch during a forward pass of the model.
        """
        if self._factor_cache is not None:
            cached = self._factor_cache.get(self)
            if cached is not None:
                return cached
        terms = self.config.neumann_terms
        return tuple(None if s is None else batched_factors([s], terms)[0] for s in (self.skew_r, self.skew_p))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out), in the dtype of ``x`` (of autocast, where it is on)."""
        device = x.device.type
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            x = x.to(torch.get_autocast_dtype(device))
        g_r, g_p = self.factors()
        (order_out, order_in), (inverse_out, inverse_in) = self._orders(), self._inverse_orders()
        y = _EquivalentLinear.apply(
            x, self.base_weight, g_r, g_p, order_in, order_out, inverse_in, inverse_out
        )
        return y if self.bias is None else y + self.bias.to(y.dtype)

    @property
    def weight(self) -> Tensor:
        """The effective weight, for code that reads ``linear.weight``; built anew at each access."""
        return self.effective_weight()

    def effective_weight(self) -> Tensor:
        """(out, in) dense W_RP as ``nn.Linear`` stores it; differentiable in R and P."""
        inverse_out, inverse_in = self._inverse_orders()
        return _gather(block_transform(self.base_weight, *self.factors()), inverse_out, inverse_in)

    def rotations(self) -> tuple[Tensor, Tensor]:
        """(R, P), dense (in, in) and (out, out), in the paper's orientation: W_RP = R W0 P."""
        pairs = zip(self.factors(), (self.primitive_r, self.primitive_p), (self.order_in, self.order_out), strict=True)
        return tuple(
            torch.eye(primitive.dimension, dtype=self.base_weight.dtype, device=order.device)
            if blocks is None
            else primitive.embed(blocks, order)
            for blocks, primitive, order in pairs
        )

    @torch.no_grad()
    def merge_and_reinitialize(self, generator: torch.Generator | None = None) -> None:
        """Merge R and P into the base weight, sample new primitives, and start again from R = P = I (Step 5).

        With ``merge="neumann"`` the effective weight does not change. With ``merge="exact"`` the exact Cayley map of
        the same parameters is merged, so the singular values do not change, and the effective weight moves by the
        Neumann error.
        """
        terms = None if self.config.merge == "exact" else self.config.neumann_terms
        factors = (orthogonal_factors(skew, terms) for skew in (self.skew_r, self.skew_p))
        inverse_out, inverse_in = self._inverse_orders()
        self._store(_gather(block_transform(self.base_weight, *factors), inverse_out, inverse_in), generator)

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

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, variant={self.config.variant!r}, "
            f"b_in={self.primitive_r.block_size}, b_out={self.primitive_p.block_size}, bias={self.bias is not None}"
        )
