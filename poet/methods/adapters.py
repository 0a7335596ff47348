"""What LoRA and OFT share: an adapter from ``peft`` on every linear layer of the decoder, the base weights frozen."""

from __future__ import annotations

import torch
from torch import nn

from poet.methods.contract import Method, adamw, is_counted, train_uncounted


class AdapterMethod(Method):
    """A method whose trainable weights are a ``peft`` adapter; embeddings, head and norms are trained as well."""

    learning_rates = ("lr", "adapter_lr")

    def adapter_config(self, targets: list[str]):
        """The ``peft`` configuration for the linear layers of these names."""
        raise NotImplementedError

    def prepare(self, model, seed):
        from peft import get_peft_model

        targets = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and is_counted(n)]
        # peft draws from the global generator: fork it, so that no other draw changes.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = get_peft_model(model, self.adapter_config(targets))
        train_uncounted(model)
        return model

    def optimizers(self, model):
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        adapter = [p for n, p in named if is_counted(n)]
        others = [p for n, p in named if not is_counted(n)]
        p = self.parameters
        groups = [{"params": adapter, "lr": p.adapter_lr}, {"params": others, "lr": p.lr}]
        return [adamw(groups, p.lr, self.weight_decay)]

    def export(self, model):
        return model.merge_and_unload()
