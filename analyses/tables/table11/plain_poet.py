"""A plain implementation of POET by the paper's equations, which Table 11 compares the faster designs with.

It forms every matrix. Q comes from a full b x b parameter, R (m x m) and P (n x n) are dense, and W_RP = R W0 P is two dense
products in every forward pass of every layer. Autograd keeps its own intermediate results. Two of the paper's designs can be
switched on: the Neumann approximation instead of a linear solve, and packed storage of Q.
"""

import torch
from torch import Tensor, nn

from poet.config import POETConfig
from poet.orthogonal import packed_size, skew_unpack
from poet.primitives import BlockPrimitive


def plain_map(q: Tensor, terms: int) -> Tensor:
    """Equation (6) product by product, each rounded to the precision of Q, skew-symmetric (..., b, b)."""
    identity = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device).expand_as(q)
    total = power = identity
    for _ in range(terms):
        power = power @ q
        total = total + power
    return (identity + q) @ total


class PlainSide(nn.Module):
    """R or P of one layer as a dense matrix: Equations (4), (5) and (6) as they are printed.

    ``order`` is a permutation from ``BlockPrimitive.sample``. ``terms`` is the k of the Neumann series; None takes a linear solve.
    ``packed`` stores the strictly upper triangle of Q; without it a full matrix A is stored, with Q = (A - A^T)/2.
    """

    def __init__(self, primitive: BlockPrimitive, order: Tensor, *, terms: int | None, packed: bool) -> None:
        super().__init__()
        k, b = primitive.blocks, primitive.block_size
        self.dimension, self.block_size, self.terms, self.packed = primitive.dimension, b, terms, packed
        self.skew = nn.Parameter(torch.zeros(k, packed_size(b)) if packed else torch.zeros(k, b, b))
        self.register_buffer("coordinates", order[: k * b].unflatten(0, (k, b)))

    def forward(self) -> Tensor:
        """(dimension, dimension), dense."""
        q = skew_unpack(self.skew, self.block_size) if self.packed else (self.skew - self.skew.mT) / 2
        if self.terms is None:
            identity = torch.eye(self.block_size, dtype=q.dtype, device=q.device).expand_as(q)
            blocks = torch.linalg.solve(identity - q, identity + q)
        else:
            blocks = plain_map(q, self.terms)
        rows, columns = self.coordinates[:, :, None], self.coordinates[:, None, :]
        dense = torch.eye(self.dimension, dtype=q.dtype, device=q.device)
        return dense.index_put((rows, columns), blocks)


class PlainPOETLinear(nn.Module):
    """y = x (R W0 P), with the paper's W0 (inputs, outputs), which is fixed; for ``terms`` and ``packed`` see :class:`PlainSide`."""

    def __init__(
        self, weight: Tensor, config: POETConfig, orders: tuple[Tensor, Tensor], *, terms: int | None, packed: bool
    ) -> None:
        super().__init__()
        sides = zip(config.primitives(*weight.shape), orders, strict=True)
        self.r, self.p = (PlainSide(primitive, order, terms=terms, packed=packed) for primitive, order in sides)
        self.register_buffer("weight", weight)

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        with torch.autocast(x.device.type, enabled=False):  # orthogonal matrices in full precision, as in the suite's layers
            effective = self.r() @ self.weight @ self.p()
        return x @ effective.to(x.dtype)


def apply_plain_poet(model: nn.Module, config: POETConfig, *, terms: int | None, packed: bool, seed: int) -> nn.Module:
    """Replace every ``nn.Linear`` but ``lm_head`` in place by a :class:`PlainPOETLinear` of its weight; no merges."""
    generator = torch.Generator().manual_seed(seed)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear and name != "lm_head":
                sides = config.primitives(child.in_features, child.out_features)
                orders = tuple(side.sample(generator) for side in sides)
                weight = child.weight.detach().T.contiguous()
                setattr(parent, name, PlainPOETLinear(weight, config, orders, terms=terms, packed=packed))
    return model
