"""What the layers of a model do together, because one by one it would cost more to ask than to compute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from poet.linear import POETLinear

#: Numbers in a weight up to which equal-sized layers are transformed in one batch: below it, calls cost more than products.
SMALL = 2**17


def by_block_size(layers: Iterable[POETLinear]) -> dict[tuple, list[Tensor]]:
    """Packed skew matrices that one call can map: of one k, block size, device and dtype (the key, in this order)."""
    groups: dict[tuple, list[Tensor]] = defaultdict(list)
    for layer in layers:
        for skew in (layer.skew_r, layer.skew_p):
            if skew is not None:
                groups[layer.config.neumann_terms, skew.shape[1], skew.device, skew.dtype].append(skew)
    return groups


def by_shape(layers: Iterable[POETLinear]) -> list[list[POETLinear]]:
    """Layers that one call can transform: small ones of equal shape and configuration together, each other one alone."""
    groups: dict[object, list[POETLinear]] = defaultdict(list)
    for layer in layers:
        weight = layer.base_weight
        key = (weight.shape, weight.device, weight.dtype, layer.config)
        groups[key if weight.numel() <= SMALL else layer].append(layer)
    return list(groups.values())


def stack(tensors: Sequence[Tensor | None]) -> Tensor | None:
    """One batch of equal tensors, without a copy for a single one; None where the side is the identity."""
    if tensors[0] is None:
        return None
    return tensors[0][None] if len(tensors) == 1 else torch.stack(list(tensors))
