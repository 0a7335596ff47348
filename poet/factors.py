"""The small orthogonal factors of a whole model, computed in one batch per block size.

A model has hundreds of small skew-symmetric matrices. Mapping them layer by layer costs a dozen kernel launches each;
mapping all of one block size together costs a dozen in all.
"""

from __future__ import annotations

from collections import defaultdict
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
    q = skew_unpack(skew)
    return cayley(q) if terms is None else cayley_neumann(q, terms)


class FactorCache:
    """Computes every layer's factors at the start of a forward pass of the model that it is hooked on.

    A batch is valid until a parameter it was made from changes, or its graph has been used up by a backward pass;
    a layer that finds no valid entry computes its own factors. So accumulation, activation checkpointing (which runs
    layers again during backward) and calling a layer alone all stay correct.
    """

    def __init__(self, layers: list[POETLinear]) -> None:
        self.layers = layers
        self._entries: dict[nn.Parameter, tuple[int, bool, Tensor]] = {}

    def __getstate__(self) -> dict:
        # Copies and pickles of a model carry no half-used autograd graph.
        return {"layers": self.layers, "_entries": {}}

    def install(self, model: nn.Module) -> None:
        """Hook on ``model``, taking the place of a cache that an earlier ``apply_poet`` left there."""
        self.remove_from(model)
        model.register_forward_pre_hook(self)
        for layer in self.layers:
            layer._factor_cache = self

    @staticmethod
    def remove_from(model: nn.Module) -> None:
        """Unhook any cache from ``model``."""
        for key, hook in list(model._forward_pre_hooks.items()):
            if isinstance(hook, FactorCache):
                del model._forward_pre_hooks[key]

    def __call__(self, model: nn.Module, inputs: tuple) -> None:
        """The forward pre-hook: fill the cache."""
        self._entries.clear()
        groups: dict[tuple, list[nn.Parameter]] = defaultdict(list)
        for layer in self.layers:
            for skew in (layer.skew_r, layer.skew_p):
                if skew is not None:
                    groups[skew.shape[1], layer.config.neumann_terms, skew.device, skew.dtype].append(skew)
        for (_, terms, _, _), skews in groups.items():
            packed = torch.cat(skews)
            if packed.requires_grad:
                # The graph is gone once its gradient has been formed: forget the factors that hang on it.
                packed.register_hook(lambda gradient, skews=skews: self._forget(skews))
            blocks = orthogonal_factors(packed, terms).split([len(skew) for skew in skews])
            for skew, block in zip(skews, blocks, strict=True):
                self._entries[skew] = (skew._version, torch.is_grad_enabled(), block)

    def _forget(self, skews: list[nn.Parameter]) -> None:
        for skew in skews:
            self._entries.pop(skew, None)

    def get(self, layer: POETLinear) -> tuple[Tensor | None, Tensor | None] | None:
        """(G_R, G_P) of a layer, or None if the cache has no current ones."""
        found = []
        for skew in (layer.skew_r, layer.skew_p):
            if skew is None:
                found.append(None)
                continue
            version, with_graph, block = self._entries.get(skew, (None, None, None))
            if version != skew._version or (torch.is_grad_enabled() and not with_graph):
                return None
            found.append(block)
        return tuple(found)
