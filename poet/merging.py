"""Merge-then-reinitialize: R and P go into the base weight, and new primitives are sampled (Section 3.2.3, Step 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from poet.batching import divided
from poet.config import POETConfig
from poet.factors import orthogonal_factors
from poet.kernels.block_transform import merge_in_place
from poet.kernels.dispatch import wide
from poet.small_layers import SmallLayers

if TYPE_CHECKING:
    from poet.linear import POETLinear

#: Promise: e_orth (``poet.orthogonal.orthogonality_error``) of an orthogonal weight after 1,000 merges of rotations whose Q
#: has a spectral norm of 0.05, by the weight's dtype and ``POETConfig.merge``.
DRIFT = {
    (torch.float32, "neumann"): 1e-2,  # the series' own error, 2 |Q|^4 a merge at most
    (torch.float32, "exact"): 3e-5,  # rounding
    (torch.bfloat16, "neumann"): 0.2,  # rounding of W, once a merge
    (torch.bfloat16, "exact"): 0.2,
}


@torch.no_grad()
def merge_layers(layers: Sequence[POETLinear], generator: torch.Generator | None) -> None:
    """Merge every layer in place, sample its new primitives, and set R = P = I.

    The effective weight is rounded once and never copied as a whole, but for small layers. With ``merge="neumann"`` it
    does not change. With ``merge="exact"`` the exact Cayley map of the same parameters is merged: the singular values
    do not change, and the effective weight moves by the Neumann error.

    Args:
        layers: in the order in which they draw from the generator.
        generator: CPU generator.
    """
    shuffled = {layer: (layer.primitive_r.shuffle(generator), layer.primitive_p.shuffle(generator)) for layer in layers}
    small, others = divided(layers)
    for layer in others:
        _merge_alone(layer, *shuffled[layer])
    if small:
        cache = small[0]._step_cache
        if cache is not None and cache.small_layers == small:
            cache.merge([shuffled[layer] for layer in small])
        else:
            SmallLayers(small).merge([shuffled[layer] for layer in small])


def _merge_alone(layer: POETLinear, *shuffled: Tensor) -> None:
    sides = zip((layer.primitive_r, layer.primitive_p), shuffled, strict=True)
    new_in, new_out = (side.arrange(order[None])[0].to(layer.order_in.device) for side, order in sides)
    _, inverse_out, _, inverse_in = layer.orders()
    merge_in_place(
        layer.base_weight,
        _blocks(layer.skew_r, layer.config),
        _blocks(layer.skew_p, layer.config),
        None if inverse_out is None else inverse_out[new_out],
        None if inverse_in is None else inverse_in[new_in],
    )
    for side, new in (("in", new_in), ("out", new_out)):
        getattr(layer, f"order_{side}").copy_(new)
        getattr(layer, f"inverse_{side}").copy_(new.argsort())
    for skew in (layer.skew_r, layer.skew_p):
        if skew is not None:
            skew.zero_()


def _blocks(packed: Tensor | None, config: POETConfig) -> Tensor | None:
    """(k, b, b): what is merged; None for an identity side.

    In fp32 at least: blocks that are rounded to bf16 stretch the weight a little, and a thousand merges multiply that.
    """
    if packed is None:
        return None
    terms = None if config.merge == "exact" else config.neumann_terms
    return orthogonal_factors(packed.to(wide(packed.dtype)), terms)
