"""Lion on the decoder's matrices, AdamW on embeddings, head and norms: an optimizer of one's own, and two learning rates."""

from dataclasses import dataclass

import torch

from poet.methods.contract import Method, Row, adamw, is_counted


class LionOptimizer(torch.optim.Optimizer):
    """Steps by the sign of a momentum (Chen et al. 2023), with decoupled weight decay."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in (p for p in group["params"] if p.grad is not None):
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(momentum.lerp(p.grad, 1 - beta1).sign_(), alpha=group["lr"])
                momentum.lerp_(p.grad, 1 - beta2)
        return loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Attributes:
    lr: of AdamW, for embeddings, head and norms.
    matrix_lr: of Lion, for the matrices.
    """

    lr: float = 1e-2
    matrix_lr: float = 3e-3


class Lion(Method):
    name = "lion"
    Parameters = Parameters
    learning_rates = ("lr", "matrix_lr")
    rows = (Row("lion", "Lion", {}),)

    def optimizers(self, model):
        matrices = [p for name, p in model.named_parameters() if is_counted(name)]
        others = [p for name, p in model.named_parameters() if not is_counted(name)]
        lion = LionOptimizer(matrices, self.parameters.matrix_lr, weight_decay=self.weight_decay)
        return [lion, adamw(others, self.parameters.lr, self.weight_decay)]


METHOD = Lion
