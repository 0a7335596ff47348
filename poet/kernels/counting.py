"""Floating-point operations of POET's operators, for ``torch.utils.flop_counter.FlopCounterMode``.

Importing this file registers them. The operators do not do it themselves: PyTorch's counter imports Triton, for which
those who count nothing on a CPU need not wait.
"""

from __future__ import annotations

import torch
from torch.utils.flop_counter import register_flop_formula

from poet.kernels import cayley_neumann  # noqa: F401 (an operator exists once its file is imported)
from poet.kernels.block_transform import pullback_operations, transform_operations


@register_flop_formula(torch.ops.poet.block_transform)
def _(weight, g_r, g_p, *orders, **_) -> int:
    return transform_operations(weight, g_r, g_p)


@register_flop_formula(torch.ops.poet.block_transform_pullback)
def _(weight, g_r, g_p, *rest, **_) -> int:
    return pullback_operations(weight, g_r, g_p)


@register_flop_formula(torch.ops.poet.pull_back_and_build)
def _(weight, g_r, g_p, *rest, **_) -> int:
    return pullback_operations(weight, g_r, g_p, build=True)


@register_flop_formula(torch.ops.poet.cayley_neumann)
def _(q, terms, **_) -> int:
    """Square, sums, and the last product; products are counted whole, though half of a symmetric one would do."""
    return 0 if terms == 0 else 2 * q[0] * q[1] ** 3 * (terms // 2 + 1)


@register_flop_formula(torch.ops.poet.cayley_neumann_pullback)
def _(q, grad, terms, **_) -> int:
    half = terms // 2
    # Square, two at the ends and the last product, and three for each further sum; k = 1 needs the last alone.
    products = 4 + 3 * (half - 1) if half else terms
    return 2 * q[0] * q[1] ** 3 * products
