"""Formulas for what each method holds for one weight matrix: as Table 1 prints them, and without its shortcuts.

All numbers are numbers of elements. The paper's memory is weights (trained or fixed, factors included) plus optimizer state. In Table 1,
m is the shorter side ("m <= n"), and fully stochastic POET has one block size b. But b is budget x dimension, which differs
between the sides of a rectangle. The printed formulas are evaluated here with the shorter side's b.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from poet.orthogonal import packed_size

#: Quantities and the names that tables give them.
QUANTITIES = {
    "trainable": "trainable parameters",
    "total": "memory: weights + optimizer state",
    "weights": "weights, factors included",
    "gradients": "gradients",
    "state": "optimizer state",
    "indices": "index buffers",
}


@dataclass(frozen=True, slots=True)
class Formulas:
    """Formulas of one method for one matrix, functions of (m, n, p), where p are the method's parameters."""

    printed: Callable[[int, int, Any], tuple[int, int]]  # trainable parameters, and weights plus optimizer state, with m <= n
    count: Callable[[int, int, Any], int]  # trainable parameters without the printed table's shortcut
    state: Callable[[int, int, Any], int]  # optimizer state, in elements
    text: tuple[str, str]  # ``count`` and ``state`` as text
    factors: bool = False  # whether the method trains factors beside a fixed matrix, and has index buffers


def _poet(count: Callable[[int, int, Any], int], printed: Callable[[int, int, Any], int], text: tuple[str, str]) -> Formulas:
    """POET's formulas: AdamW holds two elements for each trained one, in print too."""
    return Formulas(
        printed=lambda m, n, p: (printed(m, n, p), m * n + 3 * printed(m, n, p)), count=count, state=lambda m, n, p: 2 * count(m, n, p),
        text=text, factors=True,
    )


def _bs_count(m: int, n: int, p: Any) -> int:
    return (m + n) * (p.block_size - 1) // 2


FORMULAS = {
    "adamw": Formulas(
        printed=lambda m, n, p: (m * n, 3 * m * n), count=lambda m, n, p: m * n, state=lambda m, n, p: 2 * m * n, text=("mn", "2mn"),
    ),
    "galore": Formulas(
        printed=lambda m, n, p: (m * n, m * n + m * p.rank + 2 * n * p.rank), count=lambda m, n, p: m * n,
        state=lambda m, n, p: min(m, n) * p.rank + 2 * max(m, n) * p.rank, text=("mn", "r min(m,n) + 2r max(m,n)"),
    ),
    "poet-fs": _poet(
        count=lambda m, n, p: packed_size(round(p.budget * m)) + packed_size(round(p.budget * n)),
        printed=lambda m, n, p: 2 * packed_size(round(p.budget * m)),
        text=("(b_in(b_in-1) + b_out(b_out-1))/2", "b_in(b_in-1) + b_out(b_out-1)"),
    ),
    "poet-bs": _poet(count=_bs_count, printed=_bs_count, text=("(m+n)(b-1)/2", "(m+n)(b-1)")),
}


def published(formulas: Formulas, m: int, n: int, parameters: Any) -> dict[str, float]:
    """The printed formulas' values for an m x n matrix; NaN where the paper prints none."""
    trainable, total = formulas.printed(*sorted((m, n)), parameters)
    return dict.fromkeys(QUANTITIES, math.nan) | {"trainable": trainable, "total": total}


def expected(formulas: Formulas, m: int, n: int, parameters: Any) -> dict[str, int]:
    """The elements that training holds for an m x n matrix by the formulas without shortcuts, by quantity."""
    count, state = formulas.count(m, n, parameters), formulas.state(m, n, parameters)
    weights = m * n + (count if formulas.factors else 0)
    indices = m + n if formulas.factors else 0  # a permutation for each side
    return {"trainable": count, "total": weights + state, "weights": weights, "gradients": count, "state": state, "indices": indices}


def formula_texts(formulas: Formulas) -> dict[str, str]:
    """The formulas of :func:`expected`, by quantity."""
    count, state = formulas.text
    weights = f"mn + {count}" if formulas.factors else "mn"
    indices = "m + n" if formulas.factors else "0"
    return {"trainable": count, "total": f"{weights} + {state}", "weights": weights, "gradients": count, "state": state, "indices": indices}
