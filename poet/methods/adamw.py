"""AdamW on every parameter: the paper's baseline."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from poet.initialization import INITIALIZATIONS
from poet.methods.contract import Method, Row, adamw, is_counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The paper reports the best of seven learning rates between 1e-5 and 1e-2.

    Attributes:
        lr: peak learning rate.
        init: a name from ``poet.initialization`` for the matrices, or "keep" for the model's own (the control that
            trains POET's initialization directly).
    """

    lr: float = 1e-3
    init: str = "keep"

    def __post_init__(self) -> None:
        if self.init not in (*INITIALIZATIONS, "keep"):
            raise ValueError(f"adamw: init is one of {', '.join(INITIALIZATIONS)}, keep; got {self.init!r}")


class AdamW(Method):
    name = "adamw"
    Parameters = Parameters
    rows = (Row("adamw", "AdamW", {}),)
    shards_state = True

    def prepare(self, model, seed):
        if self.parameters.init != "keep":
            initialize = INITIALIZATIONS[self.parameters.init]
            generator = torch.Generator().manual_seed(seed)
            for name, module in model.named_modules():
                if isinstance(module, nn.Linear) and is_counted(name):
                    with torch.no_grad():
                        module.weight.copy_(initialize(module.out_features, module.in_features, generator))
        return model

    def optimizers(self, model):
        return [adamw(list(model.parameters()), self.parameters.lr, self.weight_decay)]


METHOD = AdamW
