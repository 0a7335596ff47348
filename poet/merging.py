"""Merge-then-reinitialize: R and P go into the base weight, and new primitives are sampled (Section 3.2.3, Step 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from poet.batching import by_shape, is_small
from poet.config import POETConfig
from poet.factors import orthogonal_factors
from poet.kernels.block_transform import merge_in_place
from poet.kernels.dispatch import wide
from poet.kernels.stacked_transform import flat_rows
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
    sampled = {layer: (layer.primitive_r.sample(generator), layer.primitive_p.sample(generator)) for layer in layers}
    small = [layer for layer in layers if is_small(layer)]
    for layer in layers:
        if not is_small(layer):
            _merge_alone(layer, *sampled[layer])
    if small:
        _merge_together(small, sampled)


def _merge_alone(layer: POETLinear, new_in: Tensor, new_out: Tensor) -> None:
    new_in, new_out = (new.to(layer.order_in.device) for new in (new_in, new_out))
    inverse_out, inverse_in = layer.orders()[1::2]
    merge_in_place(
        layer.base_weight[None],
        _blocks(layer.skew_r, layer.config),
        _blocks(layer.skew_p, layer.config),
        None if inverse_out is None else inverse_out[new_out][None],
        None if inverse_in is None else inverse_in[new_in][None],
    )
    _renew([layer], new_in[None], new_out[None])


def _merge_together(layers: list[POETLinear], sampled: dict[POETLinear, tuple[Tensor, Tensor]]) -> None:
    cache = layers[0]._step_cache
    laid_out = cache.laid_out() if cache is not None and cache.small_layers == layers else SmallLayers(layers)
    for group, weights in zip(by_shape(layers), laid_out.merged(), strict=True):
        drawn = zip(*(sampled[layer] for layer in group), strict=True)
        new_in, new_out = (torch.stack(orders).to(weights.device) for orders in drawn)
        rows = weights.flatten(0, 1).index_select(0, flat_rows(new_out)).view(weights.shape)
        permuted = rows if group[0].skew_r is None else rows.gather(2, new_in[:, None].expand_as(rows))
        torch._foreach_copy_([layer.base_weight for layer in group], list(permuted))
        _renew(group, new_in, new_out)


def _renew(layers: Sequence[POETLinear], new_in: Tensor, new_out: Tensor) -> None:
    """New permutations, (l, m) and (l, n), and R = P = I."""
    for side, new in (("in", new_in), ("out", new_out)):
        torch._foreach_copy_([getattr(layer, f"order_{side}") for layer in layers], list(new))
        torch._foreach_copy_([getattr(layer, f"inverse_{side}") for layer in layers], list(new.argsort(1)))
    if trained := [skew for layer in layers for skew in (layer.skew_r, layer.skew_p) if skew is not None]:
        torch._foreach_zero_(trained)


def _blocks(packed: Tensor | None, config: POETConfig) -> Tensor | None:
    """(1, k, b, b): what is merged; None for an identity side.

    In fp32 at least: blocks that are rounded to bf16 stretch the weight a little, and a thousand merges multiply that.
    """
    if packed is None:
        return None
    terms = None if config.merge == "exact" else config.neumann_terms
    return orthogonal_factors(packed.to(wide(packed.dtype)), terms)[None]
