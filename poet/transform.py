"""The two-sided transform W_RP = R W0 P of Equation (3), its derivative, and a linear layer with that weight.

Orientation: the paper's W is (m inputs, n outputs) and y = W^T x; ``nn.Linear`` stores W^T, (n, m), so the effective
weight is P^T W0^T R^T. The base weight is stored in the permuted basis, where each primitive acts on positions in order
(:mod:`poet.primitives`): row i and column j belong to output ``permutation_out[i]`` and input ``permutation_in[j]``.

A layer call builds W_RP, uses it as ``nn.Linear`` would, and drops it. It saves its input, the frozen base weight and the
small factors. Backward forms the gradient with respect to W_RP once, passes it through the vector-Jacobian product (VJP)
of the transform, and builds W_RP again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from poet.kernels import triton_serves
from poet.precision import autocast_off, cast, wide
from poet.primitives import BlockPrimitive, Primitive


class Side(NamedTuple):
    """R or P of one call.

    Attributes:
        primitive: the structure of the orthogonal matrix G.
        factors: the primitive's factors, for blocks (k, b, b), or None where this side is the identity.
        permutation: (m,) int64, the coordinate of each position. An identity side is stored unpermuted.
    """

    primitive: Primitive
    factors: Tensor | None
    permutation: Tensor

    def apply(self, x: Tensor, *, transpose: bool = False) -> Tensor:
        """G x or G^T x, (m, s), for x (m, s) in the permuted basis; x itself on an identity side."""
        return x if self.factors is None else self.primitive.apply(self.factors, x, transpose=transpose)

    def to_coordinates(self, x: Tensor) -> Tensor:
        """Psi^T x: the rows of x (m, s) permuted from positions to coordinates."""
        return x if self.factors is None else torch.empty_like(x).index_copy_(0, self.permutation, x)

    def to(self, dtype: torch.dtype) -> Side:
        """The same side with its factors cast to ``dtype``."""
        return self if self.factors is None or self.factors.dtype == dtype else self._replace(factors=self.factors.to(dtype))


Gradients = tuple[Tensor | None, Tensor | None]


def transform_reference(base: Tensor, r: Side, p: Side) -> Tensor:
    """W_RP = R W0 P of Equation (3), as ``nn.Linear`` stores it.

    Args:
        base: (n, m), the base weight in the permuted basis, any floating dtype.
        r, p: the sides of dimension m and n.

    Returns:
        (n, m), the dtype of ``base``. Half precision is computed in fp32 and rounded once.
    """
    precise = wide(base.dtype)
    r, p = r.to(precise), p.to(precise)
    return cast(_finished(r.apply(cast(base, precise).mT), r, p), base.dtype)


def _finished(half: Tensor, r: Side, p: Side) -> Tensor:
    """W_RP (n, m), from the weight with R alone applied, (m, n) in the permuted basis."""
    return p.to_coordinates(p.apply(r.to_coordinates(half).mT, transpose=True))


def transform_vjp_reference(
    base: Tensor, r: Side, p: Side, grad: Tensor, wanted: tuple[bool, bool], build: bool
) -> tuple[Gradients, Tensor | None]:
    """VJP of :func:`transform_reference` in the factors of both sides, and W_RP again: the two share the product with R.

    Args:
        base, r, p: the arguments of :func:`transform_reference`.
        grad: (n, m), gradient of the loss with respect to W_RP.
        wanted: whether R's factors need a gradient, and P's; an identity side does not.
        build: whether W_RP is needed too.

    Returns:
        The gradients with respect to R's and P's factors, of their shapes, fp32 for half precision, None where not wanted;
        and W_RP, (n, m) of the dtype of ``base``, or None.
    """
    precise, dtype = wide(base.dtype), base.dtype
    r, p, base, grad = r.to(precise), p.to(precise), cast(base, precise), cast(grad, precise)
    if p.factors is not None:
        grad = grad.index_select(0, p.permutation)
    if r.factors is not None:
        grad = grad.index_select(1, r.permutation)
    half = r.apply(base.mT) if wanted[1] or build else None
    by_r = by_p = None
    if wanted[1]:
        by_p = p.primitive.apply_vjp(p.factors, half.mT, grad, transpose=True)
    if wanted[0]:
        if (covered := r.primitive.covered) < base.shape[1]:  # R's gradient depends on no other input
            grad, base = grad[:, :covered], base[:, :covered]
        by_r = r.primitive.apply_vjp(r.factors, base.mT, p.apply(grad).mT)
    return (by_r, by_p), cast(_finished(half, r, p), dtype) if build else None


def _triton_serves(base: Tensor, r: Side, p: Side) -> bool:
    return triton_serves(base) and isinstance(r.primitive, BlockPrimitive) and isinstance(p.primitive, BlockPrimitive)


def transform(base: Tensor, r: Side, p: Side) -> Tensor:
    """:func:`transform_reference`, by Triton kernels where :func:`poet.kernels.triton_serves`; blocks alone have them.

    In half precision the kernels round the factors, and the weight with R alone applied; the reference rounds the result alone.
    """
    if not _triton_serves(base, r, p):
        return transform_reference(base, r, p)
    from poet.kernels.block_transform import block_transform

    r, p = r.to(base.dtype), p.to(base.dtype)
    return block_transform(base, r.factors, p.factors, r.permutation, p.permutation)


def transform_vjp(
    base: Tensor, r: Side, p: Side, grad: Tensor, wanted: tuple[bool, bool], build: bool
) -> tuple[Gradients, Tensor | None]:
    """:func:`transform_vjp_reference`, by Triton kernels where :func:`poet.kernels.triton_serves`; blocks alone have them."""
    if not _triton_serves(base, r, p):
        return transform_vjp_reference(base, r, p, grad, wanted, build)
    from poet.kernels.block_transform import block_transform_vjp

    r, p = r.to(base.dtype), p.to(base.dtype)
    factors = r.factors, p.factors
    *gradients, weight = block_transform_vjp(base, *factors, r.permutation, p.permutation, grad, *wanted, build)
    by_r, by_p = (by if needed else None for by, needed in zip(gradients, wanted, strict=True))
    return (by_r, by_p), weight if build else None


class Structure(NamedTuple):
    """What determines a layer's effective weight beside its tensors.

    Attributes:
        r, p: the primitives of R and P.
        terms: k of the Cayley-Neumann map, or None for the exact Cayley map.
    """

    r: Primitive
    p: Primitive
    terms: int | None

    def factors(self, skew_r: Tensor | None, skew_p: Tensor | None) -> Gradients:
        """The factors of both sides from their parameters, for blocks (k, b, b) from (k, b(b-1)/2); None for an identity side."""
        if skew_r is not None and skew_p is not None and self.r.maps_like(self.p):
            both = self.r.factors(torch.cat((skew_r, skew_p)), self.terms)
            return both[: len(skew_r)], both[len(skew_r) :]
        pairs = (self.r, skew_r), (self.p, skew_p)
        return tuple(None if skew is None else primitive.factors(skew, self.terms) for primitive, skew in pairs)

    def sides(self, g_r, g_p, permutation_in: Tensor, permutation_out: Tensor) -> tuple[Side, Side]:
        """R and P of one call, from their factors and the permutations (m,) and (n,) int64."""
        return Side(self.r, g_r, permutation_in), Side(self.p, g_p, permutation_out)

    def factors_vjp(self, skew_r, skew_p, gradients: Gradients) -> Gradients:
        """VJP of :meth:`factors`: the gradients with respect to the parameters, of their shapes and dtype.

        ``gradients`` has those with respect to the factors of R and of P, of their shapes; None stays None.
        """
        if gradients[0] is not None and gradients[1] is not None and self.r.maps_like(self.p):
            both = self.r.factors_vjp(torch.cat((skew_r, skew_p)), torch.cat(gradients), self.terms)
            return both[: len(skew_r)], both[len(skew_r) :]
        triples = zip((self.r, self.p), (skew_r, skew_p), gradients, strict=True)
        return tuple(
            None if grad is None else primitive.factors_vjp(skew, grad, self.terms) for primitive, skew, grad in triples
        )


def _differentiable_once(backward: Callable[..., tuple]) -> Callable[..., tuple]:
    """A backward pass whose results cannot be differentiated: ``once_differentiable``, also where the incoming gradient is a constant.

    torch takes the results for constants there, although they depend on the parameters: ``backward()`` would give zero without an error. A call that names its inputs still does.
    """
    once = torch.autograd.function.once_differentiable(backward)

    def refusing(ctx, grad):
        constant = torch.is_grad_enabled() and not grad.requires_grad  # gradients are enabled by create_graph=True
        return once(ctx, grad.detach().requires_grad_() if constant else grad)

    return refusing


class EffectiveWeight(torch.autograd.Function):
    """W_RP (n, m), in the dtype of the base weight; differentiable once in the parameters of R and P."""

    @staticmethod
    def forward(ctx, base, skew_r, skew_p, permutation_in, permutation_out, structure):
        with autocast_off(base.device.type):
            factors = structure.factors(skew_r, skew_p)
            ctx.save_for_backward(base, skew_r, skew_p, *factors, permutation_in, permutation_out)
            ctx.structure = structure
            weight = transform(base, *structure.sides(*factors, permutation_in, permutation_out))
        return weight.clone(memory_format=torch.contiguous_format)  # with two identity sides it is the base weight itself

    @staticmethod
    @_differentiable_once
    def backward(ctx, grad):
        base, skew_r, skew_p, *sides = ctx.saved_tensors
        with autocast_off(grad.device.type):
            wanted = ctx.needs_input_grad[1:3]
            gradients, _ = transform_vjp(base, *ctx.structure.sides(*sides), grad, wanted, build=False)
            return None, *ctx.structure.factors_vjp(skew_r, skew_p, gradients), None, None, None


class EquivalentLinear(torch.autograd.Function):
    """y = x W_RP^T, (..., n) for x (..., m); differentiable once in x and the parameters of R and P.

    It computes in the dtype of x: the base weight is rounded to it for the call, and so is W_RP, as autocast rounds the weight of
    ``nn.Linear``. Triton kernels round the factors too; the reference keeps them in fp32. The forward pass saves no effective
    weight: backward builds W_RP again.
    """

    @staticmethod
    def forward(ctx, x, base, skew_r, skew_p, permutation_in, permutation_out, structure):
        with autocast_off(x.device.type):
            factors = structure.factors(skew_r, skew_p)
            ctx.save_for_backward(x, base, skew_r, skew_p, *factors, permutation_in, permutation_out)
            ctx.structure = structure
            sides = structure.sides(*factors, permutation_in, permutation_out)
            return functional.linear(x, transform(cast(base, x.dtype), *sides))

    @staticmethod
    @_differentiable_once
    def backward(ctx, grad_y):
        x, base, skew_r, skew_p, *sides = ctx.saved_tensors
        grad_x, by_skew, wanted = None, (None, None), ctx.needs_input_grad[2:4]
        with autocast_off(grad_y.device.type):
            base, (r, p) = cast(base, x.dtype), ctx.structure.sides(*sides)
            if any(wanted):
                grad_weight = grad_y.reshape(-1, grad_y.shape[-1]).mT @ x.reshape(-1, x.shape[-1])
                gradients, weight = transform_vjp(base, r, p, grad_weight, wanted, build=ctx.needs_input_grad[0])
                by_skew = ctx.structure.factors_vjp(skew_r, skew_p, gradients)
            else:
                weight = transform(base, r, p)
            if ctx.needs_input_grad[0]:
                grad_x = grad_y @ weight
        return grad_x, None, *by_skew, None, None, None
