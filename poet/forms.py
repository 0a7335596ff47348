"""The two ways to compute y = x W_RP^T, and the count of operations that picks one for each call.

Weight form: build W_RP for the call and use it as ``nn.Linear`` would; in backward pull the gradient of W_RP back to the small
factors, and build W_RP again in its place. Nothing of the weight's size is kept, and one such tensor exists at a time.

Activation form: rotate the activations instead, x -> x R -> (x R) W0 -> (x R W0) P. It builds no weight and, as the base
weight is fixed, no gradient of one; but it keeps what P acts on, tokens x n numbers. So it is taken where it is cheaper
and the tokens are so few that what it keeps is no larger than the weight.

Both compute in the dtype of x: under autocast weight and factors, which are kept in full precision, are rounded to it for the
call, as ``nn.Linear``'s weight is. The weight form then holds two tensors of the weight's size, of half the bytes each.

Orientation: the paper's W is (m inputs, n outputs), ``nn.Linear`` stores W^T, (n, m); ``orders`` are the permutations
(order_out, inverse_out, order_in, inverse_in) of a layer, None for an identity side.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from poet.kernels.block_transform import block_transform, block_transform_pullback, pull_back_and_build, rotate_columns
from poet.kernels.block_transform import pullback_operations, transform_operations
from poet.kernels.dispatch import full_precision, in_dtype_of

Orders = Sequence[Tensor | None]


def weight_form_operations(tokens: int, weight, g_r, g_p, *, training: bool) -> int:
    """Floating-point operations of the weight form's matrix products; shapes (n, m), (k, b, b) or None."""
    n, m = weight
    transform = transform_operations(weight, g_r, g_p)
    if not training:
        return 2 * tokens * n * m + transform
    return 6 * tokens * n * m + transform + pullback_operations(weight, g_r, g_p, build=True)


def activation_form_operations(tokens: int, weight, g_r, g_p, *, training: bool) -> int:
    """Floating-point operations of the activation form's matrix products; shapes as above."""
    n, m = weight
    rotations = sum(2 * tokens * g[-3] * g[-1] ** 2 for g in (g_r, g_p) if g is not None)
    return 4 * tokens * n * m + 3 * rotations if training else 2 * tokens * n * m + rotations


def prefers_activations(tokens: int, weight, g_r, g_p, *, training: bool) -> bool:
    """Whether the activation form is the one to take: fewer operations and, in training, no more memory."""
    if training and tokens > weight[1]:
        return False
    counts = (form(tokens, weight, g_r, g_p, training=training) for form in (activation_form_operations, weight_form_operations))
    activations, built = counts
    return activations < built


def equivalent_linear(x: Tensor, weight: Tensor, g_r: Tensor | None, g_p: Tensor | None, orders: Orders) -> Tensor:
    """x @ W_RP^T in the form that is cheaper; once differentiable in x, g_r and g_p.

    Args:
        x: (..., m), any floating dtype; the result has it too.
        weight: (n, m), the base weight in the permuted basis.
        g_r, g_p: (k, b, b) of the weight's dtype, or None for an identity side.
        orders: see the module's docstring.

    Returns:
        (..., n).

    Raises:
        TypeError: x is not floating.
        ValueError: the last dimension of x is not m.
    """
    if not x.is_floating_point():
        raise TypeError(f"a POET layer takes floating-point input, got {x.dtype}")
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(f"a POET layer of {weight.shape[1]} inputs got an input of shape {tuple(x.shape)}")
    training = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, g_r, g_p))
    shapes = (None if g is None else g.shape for g in (g_r, g_p))
    tokens = x.numel() // x.shape[-1]
    form = _ActivationForm if prefers_activations(tokens, weight.shape, *shapes, training=training) else _WeightForm
    return form.apply(x, weight, g_r, g_p, *orders)


class _WeightForm(torch.autograd.Function):
    """Saves x, the base weight and the factors; W_RP is built in forward and again in backward."""

    @staticmethod
    def forward(ctx, x, weight, g_r, g_p, order_out, inverse_out, order_in, inverse_in):
        ctx.save_for_backward(x, weight, g_r, g_p, order_out, order_in, inverse_in)
        with full_precision(x.device.type):
            return x @ block_transform(*in_dtype_of(x, weight, g_r, g_p), order_out, order_in, inverse_in).mT

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_y):
        x, weight, g_r, g_p, order_out, order_in, inverse_in = ctx.saved_tensors
        grad_x = grad_r = grad_p = None
        with full_precision(grad_y.device.type):
            layer = in_dtype_of(x, weight, g_r, g_p)
            if any(ctx.needs_input_grad[2:4]):
                of_weight = grad_y.reshape(-1, grad_y.shape[-1]).mT @ x.reshape(-1, x.shape[-1])
                if ctx.needs_input_grad[0]:
                    pulled = pull_back_and_build(*layer, of_weight, order_out, order_in, inverse_in)
                    grad_x = grad_y @ of_weight  # which is W_RP now
                else:
                    pulled = block_transform_pullback(*layer, of_weight, order_out, order_in)
                grad_r, grad_p = (None if g is None else b.to(g.dtype) for g, b in zip((g_r, g_p), pulled, strict=True))
            elif ctx.needs_input_grad[0]:
                grad_x = grad_y @ block_transform(*layer, order_out, order_in, inverse_in)
        return grad_x, None, grad_r, grad_p, None, None, None, None


def _select(x: Tensor, columns: Tensor | None) -> Tensor:
    return x if columns is None else x.index_select(1, columns)


def _blocks_gradient(x: Tensor, grad: Tensor, g: Tensor | None) -> Tensor | None:
    """Gradient of x @ diag(G, I) with respect to G (k, b, b)."""
    if g is None:
        return None
    k, b, _ = g.shape
    x, grad = (t[:, : k * b].unflatten(1, (k, b)).transpose(0, 1) for t in (x, grad))
    return torch.bmm(x.mT, grad)


class _ActivationForm(torch.autograd.Function):
    """Saves x, the base weight, the factors, and the activations between the base weight and P."""

    @staticmethod
    def forward(ctx, x, weight, g_r, g_p, order_out, inverse_out, order_in, inverse_in):
        with full_precision(x.device.type):
            base, r, p = in_dtype_of(x, weight, g_r, g_p)
            rotated = rotate_columns(_select(x.reshape(-1, x.shape[-1]), order_in), None if r is None else r.mT)
            before_p = rotated @ base.mT
            y = _select(rotate_columns(before_p, None if p is None else p.mT), inverse_out)
        ctx.save_for_backward(x, weight, g_r, g_p, order_out, order_in, inverse_in, None if p is None else before_p)
        return y.reshape(*x.shape[:-1], y.shape[1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_y):
        x, weight, g_r, g_p, order_out, order_in, inverse_in, before_p = ctx.saved_tensors
        grad_x = grad_r = grad_p = None
        with full_precision(grad_y.device.type):
            base, r, p = in_dtype_of(x, weight, g_r, g_p)
            grad = _select(grad_y.reshape(-1, grad_y.shape[-1]), order_out)
            if ctx.needs_input_grad[3]:
                grad_p = _blocks_gradient(before_p, grad, p).to(g_p.dtype)
            if ctx.needs_input_grad[0] or ctx.needs_input_grad[2]:
                grad = rotate_columns(grad, p) @ base
                if ctx.needs_input_grad[2]:
                    grad_r = _blocks_gradient(_select(x.reshape(-1, x.shape[-1]), order_in), grad, r).to(g_r.dtype)
                if ctx.needs_input_grad[0]:
                    grad_x = _select(rotate_columns(grad, r), inverse_in).reshape(x.shape)
        return grad_x, None, grad_r, grad_p, None, None, None, None
