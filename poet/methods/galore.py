"""GaLore: Adam on a low-rank projection of each matrix's gradient (Zhao et al. 2024, Algorithm 2).

Written from that paper, because its authors' package has had no release since March 2024 and depends on bitsandbytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from poet.methods.contract import Method, Row, is_counted, scales_with_width


class GaLoreAdamW(torch.optim.Optimizer):
    """AdamW whose moments live in a rank-r subspace for the groups that have a ``rank``.

    For a gradient G of shape (n, m), the shorter side is projected: with n <= m, P holds the r leading left singular
    vectors of G, the moments are those of P^T G (r, m), and the update is ``scale * P`` times Adam's step. With n > m,
    P holds the r leading right singular vectors, the moments are those of G P (n, r), and the update is Adam's step times ``scale * P^T``. P is
    renewed every ``refresh_every`` steps; the moments are kept across a renewal, as Algorithm 2 has it.

    Args:
        params: parameter groups; each may set ``rank`` (None: plain AdamW), ``scale``, ``refresh_every``.
        lr, betas, eps, weight_decay: AdamW's, decoupled decay.
    """

    def __init__(self, params, lr=1e-2, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "rank": None,
            "scale": 1.0,
            "refresh_every": 1,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        """One optimization step; see ``torch.optim.Optimizer.step``."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, group)
        return loss

    def _update(self, p, group):
        state = self.state[p]
        if not state:
            state["step"] = 0
        gradient = p.grad
        rank = group["rank"]
        if rank is not None:
            if state["step"] % group["refresh_every"] == 0:
                state["projector"] = self._projector(gradient, rank)
            left = gradient.shape[0] <= gradient.shape[1]
            projector = state["projector"]
            gradient = projector.mT @ gradient if left else gradient @ projector
        if state["step"] == 0:
            state["exp_avg"] = torch.zeros_like(gradient)
            state["exp_avg_sq"] = torch.zeros_like(gradient)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        corrected = (square / (1 - beta2 ** state["step"])).sqrt_().add_(group["eps"])
        update = mean / corrected / (1 - beta1 ** state["step"])
        if rank is not None:
            update = group["scale"] * (projector @ update if left else update @ projector.mT)
        p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=group["lr"])

    @staticmethod
    def _projector(gradient, rank):
        u, _, vh = torch.linalg.svd(gradient.float(), full_matrices=False)
        basis = u[:, :rank] if gradient.shape[0] <= gradient.shape[1] else vh[:rank].mT
        return basis.contiguous().to(gradient.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Constants of GaLore's C4 scripts.

    Attributes:
        lr: peak learning rate of all parameters.
        rank: r of the projection. GaLore's scripts take 128, 256, 256, 1024 for 60M, 130M, 350M and 1B.
        scale: factor on the projected update.
        refresh_every: steps between two singular value decompositions.
    """

    lr: float = 1e-2
    rank: int = scales_with_width(128)
    scale: float = 0.25
    refresh_every: int = 200


class GaLore(Method):
    name = "galore"
    Parameters = Parameters
    rows = (Row("galore", "GaLore", {}),)

    def optimizers(self, model):
        matrices = [p for name, p in model.named_parameters() if is_counted(name)]
        others = [p for name, p in model.named_parameters() if not is_counted(name)]
        projected = {
            "params": matrices,
            "rank": self.parameters.rank,
            "scale": self.parameters.scale,
            "refresh_every": self.parameters.refresh_every,
        }
        return [GaLoreAdamW([projected, {"params": others}], lr=self.parameters.lr, weight_decay=self.weight_decay)]


METHOD = GaLore
