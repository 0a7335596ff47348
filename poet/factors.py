"""The small orthogonal factors of a whole model, computed in one batch per block size.

A model has hundreds of small skew-symmetric matrices. Mapping them layer by layer costs a dozen kernel launches each;
mapping all of one block size together costs a dozen in all.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from poet.orthogonal import cayley, cayley_neumann, skew_unpack

if TYPE_CHECKING:
    from poet.linear import POETLinear


def orthogonal_factors(skew: Tensor | None, terms: int | None) -> Tensor | None:
    """Orthogonal blocks from packed skew matrices.

    Args:
        skew: (blocks, b(b-1)/2), or None for an identity side.
        terms: k of the Cayley-Neumann map, or None for the exact Cayley map.

    Returns:
        (blocks, b, b), or None.
    """
    if skew is None:
        return None
    with full_precision(skew.device.type):
        q = skew_unpack(skew)
        return cayley(q) if terms is None else cayley_neumann(q, terms)


def full_precision(device: str) -> contextlib.AbstractContextManager:
    """Autocast switched off: factors rounded to bf16 would not be orthogonal."""
    if torch.amp.is_autocast_available(device):
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()


class _BatchedFactors(torch.autograd.Function):
    """Factors of several layers of one block size, mapped in one batch in both directions.

    Saves no tensor: backward maps again. So the node can be used any number of times (several losses, activation
    checkpointing), and a layer saves as many tensors with the batch as without it.
    """

    @staticmethod
    def forward(ctx, terms, *skews):
        ctx.set_materialize_grads(False)
        ctx.terms, ctx.skews, ctx.versions = terms, skews, [skew._version for skew in skews]
        blocks = orthogonal_factors(torch.cat(skews), terms)
        return tuple(torch.split_with_sizes_copy(blocks, [len(skew) for skew in skews]))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        if ctx.versions != [skew._version for skew in ctx.skews]:
            raise RuntimeError("a packed skew matrix was modified in place between forward and backward")
        result = [None] * len(gradients)
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        if used:
            with torch.enable_grad():
                packed = torch.cat([ctx.skews[i].detach() for i in used]).requires_grad_()
                blocks = orthogonal_factors(packed, ctx.terms)
            (pulled,) = torch.autograd.grad(blocks, packed, torch.cat([gradients[i] for i in used]))
            for i, part in zip(used, pulled.split([len(ctx.skews[i]) for i in used]), strict=True):
                result[i] = part
        return None, *result


def batched_factors(skews: Sequence[Tensor], terms: int | None) -> tuple[Tensor, ...]:
    """:func:`orthogonal_factors` of several packed matrices of one block size; once differentiable.

    Args:
        skews: (blocks_i, b(b-1)/2) each, one b, one dtype, one device.
        terms: k, or None for the exact Cayley map.

    Returns:
        (blocks_i, b, b) each.
    """
    return _BatchedFactors.apply(terms, *skews)


class FactorCache:
    """Computes every layer's factors at the start of a forward pass of the model that it is hooked on.

    They live as long as that forward pass. A layer that is called alone, or again during backward by activation
    checkpointing, computes its own: nothing can be stale, however parameters are changed.
    """

    def __init__(self, layers: list[POETLinear]) -> None:
        self.layers = layers
        self._factors: dict[nn.Parameter, Tensor] = {}

    def install(self, model: nn.Module) -> None:
        """Hook on ``model``, taking the place of a cache that an earlier ``apply_poet`` left there."""
        self.remove_from(model)
        model.register_forward_pre_hook(self.fill)
        model.register_forward_hook(self.drop, always_call=True)
        for layer in self.layers:
            layer._factor_cache = self

    @staticmethod
    def remove_from(model: nn.Module) -> None:
        """Unhook any cache from ``model``."""
        for hooks in (model._forward_pre_hooks, model._forward_hooks):
            for key, hook in list(hooks.items()):
                if isinstance(getattr(hook, "__self__", None), FactorCache):
                    del hooks[key]

    def fill(self, *_: object) -> None:
        """The forward pre-hook."""
        self._factors.clear()
        groups: dict[tuple, list[nn.Parameter]] = defaultdict(list)
        for layer in self.layers:
            for skew in (layer.skew_r, layer.skew_p):
                if skew is not None:
                    groups[skew.shape[1], layer.config.neumann_terms, skew.device, skew.dtype].append(skew)
        for (_, terms, _, _), skews in groups.items():
            self._factors.update(zip(skews, batched_factors(skews, terms), strict=True))

    def drop(self, *_: object) -> None:
        """The forward hook, called after an exception too."""
        self._factors.clear()

    def get(self, layer: POETLinear) -> tuple[Tensor | None, Tensor | None] | None:
        """(G_R, G_P) of a layer, or None if they have to be computed."""
        found = tuple(None if skew is None else self._factors.get(skew) for skew in (layer.skew_r, layer.skew_p))
        for skew, factor in zip((layer.skew_r, layer.skew_p), found, strict=True):
            if skew is None:
                continue
            if factor is None or (torch.is_grad_enabled() and skew.requires_grad and not factor.requires_grad):
                return None
        return found
