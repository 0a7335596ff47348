"""The transform of :mod:`poet.kernels.block_transform` for a stack of small weights: fewer calls, and rows alone.

On a small weight a call costs more than its arithmetic. So whatever depends on base weights and permutations alone is
laid out once, and two products with blocks and two selections of whole rows are left:

    base (inputs x outputs) -> R's blocks -> rows to their inputs -> P's blocks, turned -> rows to their outputs

Between the products a weight is in the paper's orientation, inputs x outputs, and the second product turns it. So both
permutations are of rows, which are contiguous; the other transform gathers columns number by number, and needs no layout.

Suffixes as there: ``l`` weights of one shape, ``n`` outputs, ``m`` inputs, ``k`` blocks of a side, ``b`` their size.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from poet.kernels.dispatch import wide


class Scratch:
    """Two buffers that results which do not last are written to in turn: new memory costs a CPU more than a product."""

    def __init__(self, largest: int, device: torch.device, dtype: torch.dtype) -> None:
        self._buffers = itertools.cycle(torch.empty(2, largest, device=device, dtype=dtype))

    def take(self, *shape: int) -> Tensor:
        """Uninitialized memory, until the next but one."""
        return next(self._buffers)[: math.prod(shape)].view(shape)


class StackedTransform:
    """The transform of l small weights of one shape, laid out for :meth:`build` and :meth:`pull_back`.

    Half precision is computed, and held, in fp32. P either rotates every output, or has one block: block-stochastic and
    fully stochastic SPO have no third case. In the first one, each of the pieces that R's side hands to P's is what one
    block acts on; else a piece is a whole weight.

    Args:
        base: (l, n, m), base weights in the permuted basis.
        blocks_r, blocks_p: (k, b) of each side, (0, 0) for an identity.
        orders: order_in, inverse_in, order_out, inverse_out of ``poet.linear``, (l, m) and (l, n) int64.
        scratch: for what does not last; weights of other shapes may share it.
    """

    def __init__(self, base: Tensor, blocks_r, blocks_p, orders: Sequence[Tensor], scratch: Scratch) -> None:
        self.count, self.outputs, self.inputs = base.shape
        self._blocks_r, self._covered = blocks_r, math.prod(blocks_r)
        self._all_inputs, self._all_outputs = self._covered == self.inputs, math.prod(blocks_p) == self.outputs
        assert blocks_p[0] <= 1 or self._all_outputs
        self._pieces, self._rotated = blocks_p if self._all_outputs else (1, blocks_p[1])
        self._width = self.outputs // self._pieces
        self._dtype, self._scratch = base.dtype, scratch
        # Numbers of the first rows, with the weights under each other.
        piece = torch.arange(self._pieces, device=base.device)
        weight = torch.arange(self.count, device=base.device)[:, None, None]
        self._first_piece = weight * (self.inputs * self._pieces) + piece[:, None]
        self._first_input = weight * (self.inputs * self._pieces) + piece * self.inputs
        self._first_output = weight[:, 0] * self.outputs
        self._lay_out(base, orders)

    def _lay_out(self, base: Tensor, orders: Sequence[Tensor]) -> None:
        order_in, inverse_in, order_out, inverse_out = orders
        k, b = self._blocks_r
        self._base = base.mT.to(wide(base.dtype)).contiguous()
        self._blocks = self._base[:, : self._covered].reshape(self.count * max(1, k), b, self.outputs)
        self._to_inputs = (inverse_in[:, None] * self._pieces + self._first_piece).flatten()
        self._from_inputs = (order_in[:, :, None] + self._first_input).flatten() if self._all_inputs else None
        self._columns = order_in[:, None, : self._covered].expand(-1, self.outputs, -1)
        self._to_outputs = (inverse_out + self._first_output).flatten()
        self._from_outputs = (order_out + self._first_output).flatten()

    def merged(self, g_r: Tensor | None, g_p: Tensor | None, new_in: Tensor, new_out: Tensor) -> Tensor:
        """What :meth:`build` gives, (l, n, m), in the permuted basis of other permutations, (l, m) and (l, n)."""
        built = self.build(g_r, g_p)[1]
        rows = built.index_select(0, (new_out + self._first_output).flatten()).view(self.count, self.outputs, -1)
        return rows.gather(2, new_in[:, None].expand_as(rows)) if self._covered else rows

    def again(self, base: Tensor, orders: Sequence[Tensor]) -> StackedTransform:
        """The same with other base weights and permutations."""
        other = copy.copy(self)
        other._lay_out(base, orders)
        return other

    def build(self, g_r: Tensor | None, g_p: Tensor | None) -> tuple[Tensor, Tensor]:
        """
        Args:
            g_r, g_p: (l*k, b, b), None for the identity.

        Returns:
            The pieces, which :meth:`pull_back` takes, and the effective weights as ``nn.Linear`` stores them, (l*n, m).
        """
        rows = self._base
        if g_r is not None:
            rows = self._scratch.take(*self._base.shape)
            torch.bmm(g_r, self._blocks, out=rows[:, : self._covered].view(self._blocks.shape))
            if not self._all_inputs:
                rows[:, self._covered :] = self._base[:, self._covered :]
        pieces = rows.view(-1, self._width).index_select(0, self._to_inputs).view(-1, self.inputs, self._width)
        turned = pieces.mT
        if g_p is not None:
            turned = self._scratch.take(len(pieces), self._width, self.inputs)
            torch.bmm(g_p.mT, pieces[:, :, : self._rotated].mT, out=turned[:, : self._rotated])
            if not self._all_outputs:
                turned[:, self._rotated :] = pieces[:, :, self._rotated :].mT
        return pieces, turned.reshape(-1, self.inputs).index_select(0, self._to_outputs).to(self._dtype)

    def pull_back(
        self,
        g_r: Tensor | None,
        g_p: Tensor | None,
        pieces: Tensor,
        gradients: Sequence[Tensor | None],
        by_r: Tensor | None,
        by_p: Tensor | None,
    ) -> None:
        """
        Args:
            g_r, g_p, pieces: see :meth:`build`.
            gradients: (n, m), of the loss with respect to each effective weight; None for a layer that it does not depend on.
            by_r, by_p: where the gradients with respect to the blocks are written; None for a side that has none.
        """
        if any(gradient is None for gradient in gradients):
            zero = self._base.new_zeros(self.outputs, self.inputs)
            gradients = [zero if gradient is None else gradient for gradient in gradients]
        natural = self._scratch.take(self.count * self.outputs, self.inputs)
        torch.cat([gradient.to(natural.dtype) for gradient in gradients], out=natural)
        turned = self._scratch.take(*natural.shape)
        torch.index_select(natural, 0, self._from_outputs, out=turned)
        turned = turned.view(len(pieces), self._width, self.inputs)
        if by_p is not None:
            torch.bmm(pieces[:, :, : self._rotated].mT, turned[:, : self._rotated].mT, out=by_p)
        if by_r is None:
            return
        if not self._all_inputs:  # only the inputs that R touches carry a gradient to it
            touched = self._scratch.take(self.count, self.outputs, self._covered)
            turned = torch.gather(turned.view(self.count, self.outputs, -1), 2, self._columns, out=touched)
            turned = turned.view(len(pieces), self._width, -1)
        rows = turned.mT
        if g_p is not None:
            rows = self._scratch.take(*rows.shape)
            torch.bmm(turned[:, : self._rotated].mT, g_p.mT, out=rows[:, :, : self._rotated])
            if not self._all_outputs:
                rows[:, :, self._rotated :] = turned[:, self._rotated :].mT
        rows = rows.reshape(-1, self._width)
        if self._from_inputs is not None:
            rows = torch.index_select(rows, 0, self._from_inputs, out=self._scratch.take(*rows.shape))
        torch.bmm(rows.view(len(self._blocks), -1, self.outputs), self._blocks.mT, out=by_r)
