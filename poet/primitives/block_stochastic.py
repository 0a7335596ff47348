"""Block-stochastic SPO, Equation (5)."""

from __future__ import annotations

from poet.primitives.blocks import BlockPrimitive
from poet.primitives.contract import Variant


def block_stochastic(dimension: int, block_size: int) -> BlockPrimitive:
    """m/b blocks under a random permutation of the coordinates, Equation (5).

    Args:
        dimension: m.
        block_size: b, a divisor of m; 0 gives the identity.

    Raises:
        ValueError: the block size is below 2 (and not 0), or does not divide the dimension.
    """
    if block_size == 0:
        return BlockPrimitive(dimension, 0, 0)
    if block_size < 2:
        raise ValueError(f"POET block size {block_size} rotates nothing: use 2 or more, or 0 for the identity")
    if dimension % block_size:
        raise ValueError(
            f"POET block size {block_size} does not divide dimension {dimension}: choose a divisor of it, or variant='fs'"
        )
    return BlockPrimitive(dimension, block_size, dimension // block_size)


def _sides(
    in_features: int, out_features: int, *, block_size: int, block_size_r: int | None, block_size_p: int | None
) -> tuple[BlockPrimitive, BlockPrimitive]:
    r, p = (block_size if own is None else own for own in (block_size_r, block_size_p))
    return block_stochastic(in_features, r), block_stochastic(out_features, p)


VARIANT = Variant(("block_size", "block_size_r", "block_size_p"), _sides)
