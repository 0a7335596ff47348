"""Operations of the matrix products, by formula; a multiply and an add are two.

``b`` is a
block size, ``m`` inputs, ``n`` outputs, ``N`` tokens.
"""

from collections.abc import Sequence


def rotation_blocks(blocks: int, b: int, terms: int) -> int:
    """The map of a batch: X = Q^2, the sums E_2, ..., E_j, and the last product."""
    return 2 * blocks * b**3 * (terms // 2 + 1 if terms else 0)


def rotation_blocks_vjp(blocks: int, b: int, terms: int) -> int:
    """Its derivative: X, two products at the ends and the last one, and three for each further sum; k = 1 has the last alone."""
    half = terms // 2
    return 2 * blocks * b**3 * (4 + 3 * (half - 1) if half else terms)


def transform(m: int, n: int, side_r: tuple[int, int], side_p: tuple[int, int]) -> int:
    """W_RP from W; ``side`` is (blocks, b) of R (on the inputs) and of P (on the outputs)."""
    (k_r, b_r), (k_p, b_p) = side_r, side_p
    return 2 * n * k_r * b_r**2 + 2 * m * k_p * b_p**2


def transform_vjp(m: int, n: int, side_r: tuple[int, int], side_p: tuple[int, int]) -> int:
    """W_RP again, a gradient of each side as large as its part of that, and P undone on the inputs that R acts on."""
    (k_r, b_r), (k_p, b_p) = side_r, side_p
    return 2 * transform(m, n, side_r, side_p) + 2 * k_r * b_r * k_p * b_p**2


def linear(m: int, n: int, tokens: int) -> int:
    """A plain layer forward and backward: y, the gradient of x, the gradient of W."""
    return 6 * tokens * m * n


def poet_linear(m: int, n: int, tokens: int, side_r: tuple[int, int], side_p: tuple[int, int], terms: int) -> int:
    """A POET layer alone forward and backward: a plain one, its factors, W_RP, and the derivative that builds W_RP again."""
    factors = sum(rotation_blocks(k, b, terms) + rotation_blocks_vjp(k, b, terms) for k, b in (side_r, side_p) if k)
    return linear(m, n, tokens) + factors + transform(m, n, side_r, side_p) + transform_vjp(m, n, side_r, side_p)


def newton_schulz(shapes: Sequence[tuple[int, int]], steps: int) -> int:
    """Muon's iteration on matrices (n, m): X X^T, its square, and their product with X, ``steps`` times."""
    return sum(steps * (4 * min(s) ** 2 * max(s) + 2 * min(s) ** 3) for s in shapes)


def low_rank_projections(shapes: Sequence[tuple[int, int]], rank: int) -> int:
    """GaLore's projection of each gradient to the subspace, and of each update back."""
    return sum(4 * rank * n * m for n, m in shapes)
