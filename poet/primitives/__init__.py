"""Stochastic primitive optimization (SPO): the structured orthogonal matrices that R and P are (Section 3.2.1). One file per variant."""

from poet.primitives import block_stochastic as _bs
from poet.primitives import fully_stochastic as _fs
from poet.primitives.block_stochastic import block_stochastic
from poet.primitives.blocks import BlockPrimitive
from poet.primitives.contract import Primitive, Variant
from poet.primitives.fully_stochastic import fully_stochastic, split_budget

#: By the name that ``POETConfig.variant`` takes. A new primitive is a file of this folder and a row here.
VARIANTS: dict[str, Variant] = {"bs": _bs.VARIANT, "fs": _fs.VARIANT}

__all__ = ["VARIANTS", "BlockPrimitive", "Primitive", "Variant", "block_stochastic", "fully_stochastic", "split_budget"]
