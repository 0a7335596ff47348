"""A third primitive, which only the tests know: a chain of Givens rotations.

G = G_{m-1} ... G_1, where G_i turns positions i and i + 1 by an angle of its own. It shows what a new primitive takes:
this file, and a row in ``poet.primitives.VARIANTS``.
"""

import torch
from torch import Tensor

from poet.primitives.contract import Primitive, Variant


class GivensChain(Primitive):
    @property
    def shape(self) -> tuple[int, int]:
        return 1, self.dimension - 1

    @property
    def covered(self) -> int:
        return self.dimension

    def factors(self, packed: Tensor, terms: int | None) -> Tensor:
        """Cosines and sines, (2, m - 1); exact, whatever ``terms``."""
        return torch.cat((packed.cos(), packed.sin()))

    def factors_vjp(self, packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
        cosine, sine = self.factors(packed, terms)
        return (grad[1] * cosine - grad[0] * sine)[None]

    def apply(self, factors: Tensor, x: Tensor, *, transpose: bool = False) -> Tensor:
        rows, (cosines, sines) = list(x.unbind()), factors
        chain = range(self.dimension - 1)
        for i in reversed(chain) if transpose else chain:
            c, s = cosines[i], -sines[i] if transpose else sines[i]
            rows[i], rows[i + 1] = c * rows[i] - s * rows[i + 1], s * rows[i] + c * rows[i + 1]
        return torch.stack(rows)

    def apply_vjp(self, factors: Tensor, x: Tensor, grad: Tensor, *, transpose: bool = False) -> Tensor:
        factors = factors.detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(self.apply(factors, x, transpose=transpose), factors, grad)[0]


VARIANT = Variant((), lambda in_features, out_features: (GivensChain(in_features), GivensChain(out_features)))
