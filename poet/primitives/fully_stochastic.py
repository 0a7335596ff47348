"""Fully stochastic SPO, Equation (4)."""

from __future__ import annotations

import math

from poet.primitives.blocks import BlockPrimitive
from poet.primitives.contract import Variant


def fully_stochastic(dimension: int, budget: float) -> BlockPrimitive:
    """One block on a random subset of b = budget * m coordinates, Equation (4).

    Args:
        dimension: m.
        budget: b/m, in [0, 1]; b is rounded to a whole number. 0 gives the identity.

    Raises:
        ValueError: the budget is outside [0, 1], or so small that the block has fewer than two coordinates.
    """
    if not 0 <= budget <= 1:
        raise ValueError(f"a POET budget is a share of the dimension, between 0 and 1; got {budget}")
    if budget == 0:
        return BlockPrimitive(dimension, 0, 0)
    block_size = round(budget * dimension)
    if block_size < 2:
        raise ValueError(f"budget {budget} of dimension {dimension} leaves no 2 x 2 block: use a larger one, or 0")
    return BlockPrimitive(dimension, block_size, 1)


def split_budget(
    in_features: int, out_features: int, budget: float, share_r: float
) -> tuple[BlockPrimitive, BlockPrimitive]:
    """Primitives of R and P that share a constant number of parameters (Section 4, Figure 5).

    The total is that of b_in = budget * m and b_out = budget * n. R's block gets ``share_r`` of it and P's the rest, each
    rounded to the nearest whole block size.

    Args:
        in_features, out_features: m and n.
        budget: b/m and b/n that give the total, in [0, 1].
        share_r: R's share of the total, in [0, 1].

    Raises:
        ValueError: the budget or the share is outside [0, 1], or the budget leaves a dimension no 2 x 2 block, or a block would be larger than its dimension.
    """
    if not 0 <= share_r <= 1:
        raise ValueError(f"share_r is a share of the parameters, between 0 and 1; got {share_r}")
    dimensions = (in_features, out_features)
    total = sum(fully_stochastic(dimension, budget).parameters for dimension in dimensions)
    found = []
    for dimension, share in zip(dimensions, (share_r, 1 - share_r), strict=True):
        block_size = round((1 + math.sqrt(1 + 8 * share * total)) / 2)
        if block_size > dimension:
            raise ValueError(
                f"a share of {share:g} of budget {budget:g} is a block of {block_size}, more than dimension {dimension}: "
                "use a smaller budget"
            )
        found.append(BlockPrimitive(dimension, block_size, 1) if block_size > 1 else BlockPrimitive(dimension, 0, 0))
    return found[0], found[1]


def _sides(
    in_features: int, out_features: int, *, budget: float, budget_r: float | None, budget_p: float | None, share_r: float | None
) -> tuple[BlockPrimitive, BlockPrimitive]:
    if share_r is not None:
        return split_budget(in_features, out_features, budget, share_r)
    r, p = (budget if own is None else own for own in (budget_r, budget_p))
    return fully_stochastic(in_features, r), fully_stochastic(out_features, p)


VARIANT = Variant(("budget", "budget_r", "budget_p", "share_r"), _sides)
