"""SGD with momentum on every parameter."""

from dataclasses import dataclass

import torch

from poet.methods.contract import Method, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """lr: peak learning rate."""

    lr: float = 0.1


class MomentumSGD(Method):
    name = "sgd"
    Parameters = Parameters
    rows = (Row("sgd", "SGD with momentum", {}),)

    def optimizers(self, model):
        groups = list(model.parameters())
        return [torch.optim.SGD(groups, lr=self.parameters.lr, momentum=0.9, weight_decay=self.weight_decay)]


METHOD = MomentumSGD
