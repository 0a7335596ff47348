"""GaLore with two learning rates, as POET has them; GaLore itself has one rate for everything."""

from __future__ import annotations

from dataclasses import dataclass

from poet.methods import galore
from poet.methods.contract import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters(galore.Parameters):
    """GaLore's parameters, and a separate learning rate for the matrices.

    Attributes:
        lr: of embeddings, head and norms.
        matrix_lr: of the decoder's matrices, whose gradients are projected.
    """

    matrix_lr: float = 1e-2


class GaLoreTwoRates(galore.GaLore):
    name = "galore-two-rates"
    Parameters = Parameters
    learning_rates = ("lr", "matrix_lr")
    rows = (Row("galore-two-rates", "GaLore, two learning rates", {}, in_tables=False),)

    def optimizers(self, model):
        (optimizer,) = super().optimizers(model)
        for group in optimizer.param_groups:
            if group["rank"] is not None:
                group["lr"] = self.parameters.matrix_lr
        return [optimizer]


METHOD = GaLoreTwoRates
