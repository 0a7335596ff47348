"""The transform of :mod:`poet.kernels.block_transform` for a stack of small weights: fewer calls, and rows alone.

On a small weight a call costs more than its arithmetic. So whatever depends on base weights and permutations alone is
laid out once, and two products with blocks and two selections of whole rows are left:

    base (inputs x outputs) -> R's blocks -> rows to their inputs -> P's blocks, turned -> rows to their outputs

Between the products a weight is in the paper's orientation, inputs x outputs, and the second product turns it. So both
permutations are of rows, which are contiguous; the other transform gathers columns number by number, and needs no layout.

Suffixes as there: ``n`` outputs, ``m`` inputs, ``k`` blocks of a side, ``b`` their size; and ``l`` weights of one shape.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from poet.kernels.dispatch import wide


class StackedTransform:
    """The transform of l small weights of one shape, laid out for :meth:`build` and :meth:`pull_back`.

    Half precision is computed, and held, in fp32. P either rotates every output, or has one block: block-stochastic and
    fully stochastic SPO have no third case. In the first one, each of the pieces that R's side hands to P's is what one
    block acts on; else a piece is a whole weight.

    Args:
        base: (l, n, m), base weights in the permuted basis.
        blocks_r, blocks_p: (k, b) of each side, (0, 0) for an identity.
        orders: order_in, inverse_in, order_out, inverse_out of ``poet.linear``, (l, m) and (l, n) int64.
        scratch: (2, l*n*m or more), :func:`wide`, for what does not last: new memory costs a CPU more than a product does.
            Weights of other shapes may share it.
    """

    def __init__(self, base: Tensor, blocks_r, blocks_p, orders: Sequence[Tensor], scratch: Tensor) -> None:
        self.count, n, m = base.shape
        self.outputs, self._dtype = n, base.dtype
        self._blocks_r, (k, b) = blocks_r, blocks_p
        touched, self._all_outputs = math.prod(blocks_r), k * b == n
        self._some_inputs, self._all_inputs = touched > 0, touched == m
        assert k <= 1 or self._all_outputs
        pieces, self._b = (k, b) if self._all_outputs else (1, b)
        self._width = n // pieces
        # Numbers of the first rows, with the weights under each other.
        self._pieces = torch.arange(pieces, device=base.device)
        weight = torch.arange(self.count, device=base.device)[:, None, None]
        self._first_piece = weight * (m * pieces) + self._pieces[:, None]
        self._first_input = weight * (m * pieces) + self._pieces * m
        self._first_output = weight[:, 0] * n
        # Views of the two buffers. Each result is in the one that what it is made of is not in.
        first, second = (buffer[: base.numel()] for buffer in scratch)
        self._rows, self._turned = first.view(self.count, m, n), second.view(-1, self._width, m)
        self._rows_rotated, self._rows_fixed = self._rows[:, :touched], self._rows[:, touched:]
        self._turned_rotated, self._turned_fixed = self._turned[:, :b], self._turned[:, b:]
        self._gradient, self._gradient_turned = (buffer.view(-1, m) for buffer in (first, second))
        self._touched = first[: self.count * n * touched].view(self.count, n, touched)
        undone = (first if self._all_inputs else second)[: self.count * n * touched]
        self._undone = undone.view(self.count * pieces, touched, self._width)
        self._undone_pieces = undone.view(-1, self._width)
        self._undone_rotated, self._undone_fixed = self._undone[:, :, :b], self._undone[:, :, b:]
        self._selected = (second if self._all_inputs else undone).view(-1, self._width)
        self._lay_out(base, orders)

    def _lay_out(self, base: Tensor, orders: Sequence[Tensor]) -> None:
        order_in, inverse_in, order_out, inverse_out = orders
        (k, b), pieces = self._blocks_r, len(self._pieces)
        self._base = base.mT.to(wide(base.dtype)).contiguous()
        rotated, self._fixed = self._base[:, : k * b], self._base[:, k * b :]
        self._blocks = rotated.reshape(self.count * max(1, k), b, self.outputs)
        self._to_inputs = (inverse_in[:, None] * pieces + self._first_piece).flatten()
        self._from_inputs = (order_in[:, :, None] + self._first_input).flatten() if self._all_inputs else None
        self._columns = order_in[:, None, : k * b].expand(-1, self.outputs, -1)
        self._to_outputs = (inverse_out + self._first_output).flatten()
        self._from_outputs = (order_out + self._first_output).flatten()

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
            rows = self._rows
            torch.bmm(g_r, self._blocks, out=self._rows_rotated.view(self._blocks.shape))
            if not self._all_inputs:
                self._rows_fixed.copy_(self._fixed)
        m = rows.shape[1]
        pieces = rows.view(-1, self._width).index_select(0, self._to_inputs).view(-1, m, self._width)
        turned = pieces.mT
        if g_p is not None:
            torch.bmm(g_p.mT, turned[:, : self._b], out=self._turned_rotated)
            if not self._all_outputs:
                self._turned_fixed.copy_(turned[:, self._b :])
            turned = self._turned
        return pieces, turned.reshape(-1, m).index_select(0, self._to_outputs).to(self._dtype)

    def merged(self, g_r: Tensor | None, g_p: Tensor | None, new_in: Tensor, new_out: Tensor) -> Tensor:
        """What :meth:`build` gives, (l, n, m), in the permuted basis of other permutations, (l, m) and (l, n)."""
        built = self.build(g_r, g_p)[1]
        rows = built.index_select(0, (new_out + self._first_output).flatten()).view(self.count, self.outputs, -1)
        return rows.gather(2, new_in[:, None].expand_as(rows)) if self._some_inputs else rows

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
            zero = self._gradient.new_zeros(self.outputs, self._gradient.shape[1])
            gradients = [zero if gradient is None else gradient for gradient in gradients]
        torch.cat([gradient.to(self._gradient.dtype) for gradient in gradients], out=self._gradient)
        torch.index_select(self._gradient, 0, self._from_outputs, out=self._gradient_turned)
        turned, b = self._turned, self._b
        if by_p is not None:
            torch.bmm(pieces[:, :, :b].mT, self._turned_rotated.mT, out=by_p)
        if by_r is None:
            return
        if not self._all_inputs:  # only the inputs that R touches carry a gradient to it
            torch.gather(turned.view(self.count, self.outputs, -1), 2, self._columns, out=self._touched)
            turned = self._touched.view(len(turned), self._width, -1)
        if g_p is None:
            self._undone.copy_(turned.mT)
        else:
            torch.bmm(turned[:, :b].mT, g_p.mT, out=self._undone_rotated)
            if not self._all_outputs:
                self._undone_fixed.copy_(turned[:, b:].mT)
        if self._all_inputs:
            torch.index_select(self._undone_pieces, 0, self._from_inputs, out=self._selected)
        torch.bmm(self._selected.view(len(self._blocks), -1, self.outputs), self._blocks.mT, out=by_r)
