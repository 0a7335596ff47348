"""Muon on the hidden matrices, AdamW on embeddings, head and norms (Figures 6 and 7)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from poet.methods.contract import Method, Row, adamw, is_counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Constants of Muon's authors: momentum 0.95 with Nesterov, five Newton-Schulz steps.

    Attributes:
        lr: of AdamW, for embeddings, head and norms.
        muon_lr: of Muon, for the matrices.
    """

    lr: float = 1e-3
    muon_lr: float = 2e-2
    momentum: float = 0.95
    newton_schulz_steps: int = 5


class Muon(Method):
    name = "muon"
    Parameters = Parameters
    learning_rates = ("lr", "muon_lr")
    rows = (Row("muon", "Muon", {}, in_tables=False),)

    def optimizers(self, model):
        matrices = [p for name, p in model.named_parameters() if is_counted(name)]
        others = [p for name, p in model.named_parameters() if not is_counted(name)]
        muon = torch.optim.Muon(
            matrices,
            lr=self.parameters.muon_lr,
            momentum=self.parameters.momentum,
            nesterov=True,
            ns_steps=self.parameters.newton_schulz_steps,
            weight_decay=self.weight_decay,
        )
        return [muon, adamw(others, self.parameters.lr, self.weight_decay)]


METHOD = Muon
