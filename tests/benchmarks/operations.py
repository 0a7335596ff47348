"""Operations of the matrix products, by formula; a multiply and an add are two.

What symmetry saves is saved here: a product that is known to be symmetric or skew-symmetric counts half. ``b`` is a
block size, ``m`` inputs, ``n`` outputs, ``N`` tokens.
"""

from __future__ import annotations

from collections.abc import Sequence


def cayley_neumann(blocks: int, b: int, terms: int) -> int:
    """The map of a batch: X = Q^2 and E_2, ..., E_j are symmetric; the last product is full (k odd) or skew (even)."""
    if terms == 0:
        return 0
    half = terms // 2
    last = (2 if half else 0) if terms % 2 else 1
    return blocks * b**3 * (max(1, half) + last)


def cayley_neumann_pullback(blocks: int, b: int, terms: int) -> int:
    """Its pull-back: the sums again, two products for the last factor, two for each further sum, and S Q."""
    if terms == 0:
        return 0
    half = terms // 2
    if half == 0:
        return blocks * b**3 * 2
    return blocks * b**3 * (half + 4 + 4 * (half - 1) + 2)


def block_transform(m: int, n: int, side_r: tuple[int, int], side_p: tuple[int, int]) -> int:
    """W_RP from W; ``side`` is (blocks, b) of R (on the inputs) and of P (on the outputs)."""
    (k_r, b_r), (k_p, b_p) = side_r, side_p
    return 2 * n * k_r * b_r**2 + 2 * m * k_p * b_p**2


def pull_back_and_build(m: int, n: int, side_r: tuple[int, int], side_p: tuple[int, int]) -> int:
    """W_RP again, a gradient of each side as large as its part of that, and P undone on the inputs that R acts on."""
    (k_r, b_r), (k_p, b_p) = side_r, side_p
    return 2 * block_transform(m, n, side_r, side_p) + 2 * k_r * b_r * k_p * b_p**2


def linear(m: int, n: int, tokens: int) -> int:
    """A plain layer forward and backward: y, the gradient of x, the gradient of W."""
    return 6 * tokens * m * n


def poet_linear(m: int, n: int, tokens: int, side_r: tuple[int, int], side_p: tuple[int, int], terms: int) -> int:
    """A POET layer alone forward and backward, in the cheaper of its two forms, its factors included.

    Weight form: W_RP is built, and built again in backward, and the gradient of the weight is pulled back. Activation
    form: x and y are turned instead, at most four times each (forward, again in backward because x alone is kept, the
    gradient turned back, the factors' gradients); the product with W once more in place of the gradient of W.
    """
    factors = sum(
        cayley_neumann(k, b, terms) + cayley_neumann_pullback(k, b, terms) for k, b in (side_r, side_p) if k
    )
    weight = block_transform(m, n, side_r, side_p) + pull_back_and_build(m, n, side_r, side_p)
    turns = sum(2 * tokens * k * b**2 for k, b in (side_r, side_p))
    return linear(m, n, tokens) + factors + min(weight, 4 * turns)


def newton_schulz(shapes: Sequence[tuple[int, int]], steps: int) -> int:
    """Muon's iteration on matrices (n, m): X X^T, its square, and their product with X, ``steps`` times."""
    return sum(steps * (4 * min(s) ** 2 * max(s) + 2 * min(s) ** 3) for s in shapes)


def low_rank_projections(shapes: Sequence[tuple[int, int]], rank: int) -> int:
    """GaLore's projection of each gradient to the subspace, and of each update back."""
    return sum(4 * rank * n * m for n, m in shapes)
