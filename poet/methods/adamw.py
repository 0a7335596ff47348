"""AdamW on every parameter: the paper's baseline."""

from __future__ import annotations

from dataclasses import dataclass

from poet.methods.contract import Method, Row, adamw


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """lr: peak learning rate. The paper reports the best of seven between 1e-5 and 1e-2."""

    lr: float = 1e-3


class AdamW(Method):
    name = "adamw"
    Parameters = Parameters
    rows = (Row("adamw", "AdamW", {}),)

    def optimizers(self, model):
        return [adamw(list(model.parameters()), self.parameters.lr, self.weight_decay)]


METHOD = AdamW
