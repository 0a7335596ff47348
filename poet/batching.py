"""What the layers of a model do together, because one by one it would cost more to ask than to compute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch import Tensor

from poet.kernels.dispatch import wide

if TYPE_CHECKING:
    from poet.linear import POETLinear

#: Numbers in a weight up to which equal-sized layers are transformed in one batch: below it, calls cost more than products.
SMALL = 2**17


def divided(layers: Iterable[POETLinear]) -> tuple[list[POETLinear], list[POETLinear]]:
    """Layers that are worked on together, and others that are worked on one by one.

    The former are small, rotated, and on one device, with factors and weight of one precision.
    """
    small, others = [], []
    for layer in layers:
        weight, skews = layer.base_weight, [skew for skew in (layer.skew_r, layer.skew_p) if skew is not None]
        fits = all(wide(skew.dtype) == wide(weight.dtype) for skew in skews)
        (small if weight.numel() <= SMALL and skews and fits else others).append(layer)
    if len({layer.base_weight.device for layer in small}) > 1:
        return [], small + others
    return small, others


def by_block_size(layers: Iterable[POETLinear]) -> dict[tuple, list[Tensor]]:
    """Packed skew matrices that one call can map: of one k, block size, device and dtype (the key, in this order)."""
    groups: dict[tuple, list[Tensor]] = defaultdict(list)
    for layer in layers:
        for skew in (layer.skew_r, layer.skew_p):
            if skew is not None:
                groups[layer.config.neumann_terms, skew.shape[1], skew.device, skew.dtype].append(skew)
    return groups


def by_shape(layers: Iterable[POETLinear]) -> list[list[POETLinear]]:
    """Layers that one call can transform: of equal shape and configuration."""
    groups: dict[object, list[POETLinear]] = defaultdict(list)
    for layer in layers:
        weight = layer.base_weight
        groups[weight.shape, weight.device, weight.dtype, layer.config].append(layer)
    return list(groups.values())
