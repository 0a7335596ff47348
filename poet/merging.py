"""Merge-then-reinitialize: R and P go into the base weight, and new primitives are sampled (Section 3.2.3, Step 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from poet.batching import by_shape, stack
from poet.config import POETConfig
from poet.factors import orthogonal_factors
from poet.kernels.block_transform import merge_in_place

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
    for group in by_shape(layers):
        drawn = zip(*(sampled[layer] for layer in group), strict=True)
        new_in, new_out = (torch.stack(orders).to(group[0].order_in.device) for orders in drawn)
        weight = stack([layer.base_weight for layer in group])
        merge_in_place(
            weight,
            _blocks([layer.skew_r for layer in group], group[0].config),
            _blocks([layer.skew_p for layer in group], group[0].config),
            _through(stack([layer.orders()[1] for layer in group]), new_out),
            _through(stack([layer.orders()[3] for layer in group]), new_in),
        )
        if len(group) > 1:
            torch._foreach_copy_([layer.base_weight for layer in group], list(weight.unbind()))
        for side, new in (("in", new_in), ("out", new_out)):
            torch._foreach_copy_([getattr(layer, f"order_{side}") for layer in group], list(new))
            torch._foreach_copy_([getattr(layer, f"inverse_{side}") for layer in group], list(new.argsort(1)))
        if trained := [skew for layer in group for skew in (layer.skew_r, layer.skew_p) if skew is not None]:
            torch._foreach_zero_(trained)


def _blocks(skews: list[Tensor | None], config: POETConfig) -> Tensor | None:
    """(l, k, b, b): what is merged, of l layers; None for an identity side.

    In fp32 at least: blocks that are rounded to bf16 stretch the weight a little, and a thousand merges multiply that.
    """
    if skews[0] is None:
        return None
    packed = torch.cat(skews)
    terms = None if config.merge == "exact" else config.neumann_terms
    blocks = orthogonal_factors(packed.to(torch.promote_types(packed.dtype, torch.float32)), terms)
    return blocks.unflatten(0, (len(skews), -1))


def _through(inverse, new):
    """Which coordinate of the old permuted basis each one of the new is; None for an identity side."""
    return None if inverse is None else inverse.gather(1, new)
