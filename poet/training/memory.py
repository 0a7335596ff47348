"""What training holds in memory for each weight matrix, counted tensor by tensor (Table 1)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import nn

from poet.methods.contract import is_counted

#: Last parts of the names of a decoder's linear layers. A method that wraps a layer adds further parts after these.
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def count_elements(model: nn.Module, optimizers: list[torch.optim.Optimizer]) -> list[dict[str, Any]]:
    """Elements in memory for each linear layer of the decoder; to be called between backward and ``zero_grad``.

    Args:
        model: prepared by its method.
        optimizers: of the same method.

    Returns:
        One entry per linear layer: ``layer`` (name), ``m`` and ``n`` (inputs, outputs), and numbers of elements:
        ``weights`` (floating parameters and buffers), ``trainable`` (trained parameters), ``gradients``,
        ``state`` (the optimizers' tensors with more than one element) and ``indices`` (integer buffers).
    """
    state = {p: found for optimizer in optimizers for p, found in optimizer.state.items()}
    quantities = ("weights", "trainable", "gradients", "state", "indices")
    lines: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(quantities, 0))
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        layer = _layer_of(name)
        if layer is None or not is_counted(name):
            continue
        line = lines[layer]
        line["weights" if tensor.is_floating_point() else "indices"] += tensor.numel()
        if tensor.requires_grad:
            line["trainable"] += tensor.numel()
        line["gradients"] += 0 if tensor.grad is None else tensor.grad.numel()
        line["state"] += sum(
            v.numel() for v in state.get(tensor, {}).values() if isinstance(v, torch.Tensor) and v.numel() > 1
        )
    modules = dict(model.named_modules())
    return [
        # Adapter libraries put the model inside another: its own names begin at model.layers.
        {"layer": name[name.rindex("model.layers") :], "m": modules[name].in_features, "n": modules[name].out_features, **line}
        for name, line in lines.items()
    ]


def _layer_of(name: str) -> str | None:
    """The linear layer that a parameter or buffer belongs to."""
    parts = name.split(".")
    ends = [i for i, part in enumerate(parts) if part in PROJECTIONS]
    return ".".join(parts[: ends[0] + 1]) if ends else None
