"""AdamW with two learning rates, as POET has them: a control that the paper lacks."""

from __future__ import annotations

from dataclasses import dataclass

from poet.methods.contract import Method, Row, adamw, is_counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The defaults are AdamW's rate for the matrices and POET's base rate for everything else.

    Attributes:
        lr: of embeddings, head and norms.
        matrix_lr: of the decoder's matrices.
    """

    lr: float = 1e-2
    matrix_lr: float = 1e-3


class TwoRates(Method):
    name = "adamw-two-rates"
    Parameters = Parameters
    learning_rates = ("lr", "matrix_lr")
    shards_state = True
    rows = (Row("adamw-two-rates", "AdamW, two learning rates", {}, in_tables=False),)

    def optimizers(self, model):
        matrices = [p for name, p in model.named_parameters() if is_counted(name)]
        others = [p for name, p in model.named_parameters() if not is_counted(name)]
        groups = [{"params": matrices, "lr": self.parameters.matrix_lr}, {"params": others}]
        return [adamw(groups, self.parameters.lr, self.weight_decay)]


METHOD = TwoRates
