"""Figure 4: which cells of a primitive orthogonal matrix G_i are learned, in four orthogonalizations.

A cell is *learned* if it changes with the parameters (its row of the Jacobian is not zero at a random point); the
others are the 1s and 0s of an identity. The free parameters are the rank of that Jacobian, so they are measured on the
map itself, not copied from a formula:

- Givens: a rotation of two random coordinates, which is fully stochastic SPO with b = 2 (the Cayley map of one number).
- Householder: I - 2 v v^T with a unit vector v on the last b coordinates, as in the successive steps of a QR factorization.
  All b^2 cells of its support are learned, although it has only b - 1 free parameters (v up to its sign).
- Fully stochastic SPO: Equation (4); one b x b block on random coordinates. Block-stochastic SPO: Equation (5); m/b
  blocks under a random permutation, so that no coordinate is left out. Both are sampled and embedded by
  ``poet.primitives``.

The published counts are the paper's formulas at these sizes: one parameter for a Givens rotation (Section 3.2.1), and for SPO
half of Table 1's counts, which are for R and P together. The paper prints no count for Householder.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from analyses.common.evidence import exactly, ALL, share_agreeing
from analyses.common.plotting import numbered_figure, pyplot, save_figure
from poet.orthogonal import cayley, packed_size, skew_unpack
from poet.primitives import BlockPrimitive, block_stochastic, fully_stochastic
from suite.claim import Claim, Evidence
from suite.context import Context

SIZE, BLOCK = 12, 4
SEED = 0
ZERO, ONE, LEARNED = range(3)
STOCHASTIC = ("Fully stochastic SPO", "Block-stochastic SPO")
LABELS = ("0", "1", "learned")
#: Fill, hatch and symbol of each kind of cell: told apart without colour.
FILLS, HATCHES, SYMBOLS = ("#efeaf6", "#8fbbe8", "#5b3f8c"), ("", "", "xxx"), ("", "1", "")


@dataclass(frozen=True, slots=True)
class Example:
    """One primitive."""

    method: str  # the orthogonalization
    block_size: int  # b, coordinates of a block (of the support, for Householder)
    published: int | None  # the paper's count of free parameters; None if it prints none
    formula: str  # the formula of that count, with its place
    raw: int  # length of the argument of ``matrix``
    matrix: Callable[[Tensor], Tensor]  # (raw,) fp64 to the orthogonal (SIZE, SIZE)

    def point(self) -> Tensor:
        """Random arguments for ``matrix``, always the same."""
        return torch.randn(self.raw, dtype=torch.float64, generator=torch.Generator().manual_seed(SEED))

    def jacobian(self) -> Tensor:
        """Jacobian of ``matrix`` at :meth:`point`, (SIZE, SIZE, raw)."""
        return torch.autograd.functional.jacobian(self.matrix, self.point())

    def cells(self) -> np.ndarray:
        """The kind of each cell, (SIZE, SIZE): ZERO, ONE or LEARNED."""
        learned = (self.jacobian() != 0).any(-1)
        return torch.where(learned, LEARNED, self.matrix(self.point()).long()).numpy()

    def free_parameters(self) -> int:
        """Rank of the Jacobian."""
        return int(torch.linalg.matrix_rank(self.jacobian().flatten(0, 1)))


def stochastic(method: str, primitive: BlockPrimitive, published: int, formula: str, generator: torch.Generator) -> Example:
    """An example of a primitive of :mod:`poet.primitives`, on sampled coordinates, with exact Cayley blocks."""
    order = primitive.sample(generator)

    def matrix(x: Tensor) -> Tensor:
        packed = x.reshape(primitive.blocks, packed_size(primitive.block_size))
        return primitive.embed(cayley(skew_unpack(packed)), order)

    return Example(method, primitive.block_size, published, formula, primitive.parameters, matrix)


def householder(support: int) -> Example:
    """The reflection of a QR factorization that acts on the last ``support`` coordinates."""

    def matrix(x: Tensor) -> Tensor:
        v = torch.cat((x.new_zeros(SIZE - support), x / x.norm()))
        return torch.eye(SIZE, dtype=x.dtype) - 2 * torch.outer(v, v)

    return Example("Householder", support, None, "", support, matrix)


def examples() -> list[Example]:
    """Two examples of each of the four orthogonalizations."""
    g = torch.Generator().manual_seed(SEED)
    fs, bs = fully_stochastic(SIZE, BLOCK / SIZE), block_stochastic(SIZE, BLOCK)
    return [
        *(stochastic("Givens", BlockPrimitive(SIZE, 2, 1), 1, "1 (Section 3.2.1)", g) for _ in range(2)),
        *(householder(support) for support in (SIZE, SIZE - BLOCK)),
        *(stochastic(STOCHASTIC[0], fs, BLOCK * (BLOCK - 1) // 2, "b(b-1)/2 (Table 1)", g) for _ in range(2)),
        *(stochastic(STOCHASTIC[1], bs, SIZE * (BLOCK - 1) // 2, "m(b-1)/2 (Table 1)", g) for _ in range(2)),
    ]


def table(found: list[Example]) -> pd.DataFrame:
    """The tidy table: learned cells and free parameters of every example."""
    lines = []
    for i, example in enumerate(found):
        quantities = {
            "learned cells": (None, "", int((example.cells() == LEARNED).sum()), "cells"),
            "free parameters": (example.published, example.formula, example.free_parameters(), "parameters"),
        }
        for quantity, (published, formula, measured, unit) in quantities.items():
            lines.append({
                "method": example.method, "example": i % 2 + 1, "size": SIZE, "block_size": example.block_size,
                "quantity": quantity, "published": published, "published_formula": formula, "measured": measured,
                "n": 1, "std": np.nan, "unit": unit, "scale": "any",
            })
    return pd.DataFrame(lines).astype({"published": "Int64"})


def draw(found: list[Example]):
    """One column for each orthogonalization, its two examples one below the other."""
    figure, axes = pyplot().subplots(2, 4, figsize=(9.6, 5.5))
    styles = [{"facecolor": f, "hatch": h, "edgecolor": "white"} for f, h in zip(FILLS, HATCHES, strict=True)]
    with pyplot().rc_context({"hatch.linewidth": 0.5, "hatch.color": "white"}):
        for i, example in enumerate(found):
            axis, cells = axes[i % 2, i // 2], example.cells()
            for y, x in np.ndindex(cells.shape):
                kind = cells[y, x]
                axis.add_patch(pyplot().Rectangle((x, y), 1, 1, **styles[kind]))
                if SYMBOLS[kind]:
                    axis.text(x + 0.5, y + 0.54, SYMBOLS[kind], ha="center", va="center", fontsize=7)
            axis.set(xlim=(0, SIZE), ylim=(SIZE, 0), xticks=[], yticks=[], aspect="equal")
            count = example.free_parameters()
            axis.set_xlabel(f"{count} parameter{'s' * (count > 1)}, {(cells == LEARNED).sum()} cells", fontsize="small")
            if i % 2 == 0:
                axis.set_title(f"({'abcd'[i // 2]}) {example.method}", fontsize="medium")
        handles = [pyplot().Rectangle((0, 0), 1, 1, **style, label=label) for style, label in zip(styles, LABELS, strict=True)]
        figure.legend(handles=handles, loc="lower center", ncol=3, frameon=False)
        figure.tight_layout(rect=(0, 0.05, 1, 1))
    return figure


def parameters_agree(context: Context) -> Evidence:
    counted = context.table("figure4").dropna(subset="published")
    agrees = np.where(counted.measured == counted.published, "yes", "no")
    return share_agreeing(counted.assign(agrees=agrees), "agrees", ("method", "example"))


def moved(example: Example) -> float:
    """Share of the coordinates that a primitive moves: rows of its matrix that are not the identity's."""
    return float((example.matrix(example.point()) != torch.eye(SIZE)).any(1).double().mean())


def all_moved(context: Context) -> Evidence:
    shares = {method: [moved(e) for e in examples() if e.method == method] for method in STOCHASTIC}
    fully, blocks = (shares[method] for method in STOCHASTIC)
    return exactly(min(blocks), note=f"fully stochastic: {max(fully):.2f}", n=len(blocks))


CLAIMS = (
    Claim(
        key="figure4-free-parameters", place="Section 3.2.1; Table 1", kind="number",
        says="A Givens rotation has one free parameter; a primitive of size b has b(b-1)/2 in fully, m(b-1)/2 in block-stochastic SPO.",
        rule="Share of the example primitives whose free parameters (rank of the Jacobian) are the printed number: all of them.",
        unit="share of primitives", region=ALL, measure=parameters_agree,
    ),
    Claim(
        key="figure4-all-dimensions", place="Section 3.2.1, Block-stochastic SPO", kind="invariance",
        says="Block-stochastic SPO transforms all neuron dimensions at once.",
        rule="Share of the coordinates that a block-stochastic primitive moves, the least of the examples: all of them.",
        unit="share of coordinates", region=ALL, measure=all_moved,
    ),
)


def build(context: Context) -> None:
    found = examples()
    note = (
        f"m = {SIZE}; b = {BLOCK} in (c) and (d). Below each: free parameters, and the cells that they move. "
        "A Householder reflection moves every cell of its support with few parameters."
    )
    save_figure(draw(found), table(found), context, ARTIFACT, note)


ARTIFACT = numbered_figure(
    4, "Examples of the primitive orthogonal matrix in different orthogonalizations, two for each.",
    build=build, claims=CLAIMS,
)
