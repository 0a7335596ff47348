"""Turning a model into a POET model, merging it, and turning it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from poet.config import POETConfig
from poet.linear import POETLinear


def poet_layers(model: nn.Module) -> Iterator[tuple[str, POETLinear]]:
    """(name, layer) of every :class:`POETLinear`, in the model's fixed order."""
    return ((name, layer) for name, layer in model.named_modules() if isinstance(layer, POETLinear))


def _replace(model: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """Put ``new`` wherever ``old`` is registered (a shared layer has several names), and return the model."""
    for module in list(model.modules()):
        for name, child in list(module._modules.items()):
            if child is old:
                setattr(module, name, new)
    return new if model is old else model


def apply_poet(
    model: nn.Module,
    config: POETConfig,
    exclude: Sequence[str] = ("lm_head",),
    generator: torch.Generator | None = None,
) -> nn.Module:
    """Replace every ``nn.Linear`` in place by a :class:`POETLinear`, and return the model.

    Args:
        model: any module. Weights are re-initialized as ``config.init`` says; ``init="keep"`` keeps them, and then the
            model computes the same function as before. Biases are kept. Subclasses of ``nn.Linear`` (such as the output projection
            of ``nn.MultiheadAttention``, whose weight is read directly) are left alone.
        config: POET's hyperparameters.
        exclude: layers to leave alone, by full name or by the last parts of it ("lm_head", "mlp.up_proj").
        generator: CPU generator; the same seed gives the same model on every device.

    Raises:
        ValueError: a block size does not divide a dimension (the sentence names the layer), or nothing to replace.
        TypeError: ``exclude`` is one string.
    """
    if isinstance(exclude, str):
        raise TypeError(f"exclude is a sequence of names, not one: use exclude=({exclude!r},)")
    linears = [(name, module) for name, module in model.named_modules() if type(module) is nn.Linear]
    chosen = [(n, m) for n, m in linears if not any(n == e or n.endswith("." + e) for e in exclude)]
    if not chosen:
        raise ValueError(f"apply_poet found no nn.Linear to replace outside exclude={tuple(exclude)}")
    for name, linear in chosen:  # all are checked before any is replaced: a refused model stays whole
        try:
            config.primitives(linear.in_features, linear.out_features)
        except ValueError as error:
            raise ValueError(f"layer {name or '(root)'}: {error}") from None
    for _, linear in chosen:
        layer = POETLinear(
            linear.in_features,
            linear.out_features,
            config,
            bias=linear.bias is not None,
            generator=generator,
            weight=linear.weight.detach(),
            device=linear.weight.device,
            dtype=linear.weight.dtype,
        )
        if linear.bias is not None and not linear.bias.is_meta:
            layer.bias.data.copy_(linear.bias.data)
        layer.train(linear.training)
        for name in ("skew_r", "skew_p", "bias"):  # what was frozen stays frozen
            if (parameter := getattr(layer, name)) is not None:
                parameter.requires_grad_((linear.bias if name == "bias" else linear.weight).requires_grad)
        model = _replace(model, linear, layer)
    return model


def merge_and_reinitialize(model: nn.Module, generator: torch.Generator | None = None) -> None:
    """Merge every POET layer and sample new primitives (Section 3.2.3, Step 5).

    Optimizer state is not touched here: :class:`poet.optim.MergeSchedule` does both.

    Args:
        model: a model that went through :func:`apply_poet`.
        generator: CPU generator; layers draw from it in the model's fixed order, so equal seeds give equal primitives
            on every rank without communication.
    """
    for _, layer in poet_layers(model):
        layer.merge_and_reinitialize(generator)


def export_dense(model: nn.Module) -> nn.Module:
    """Replace every :class:`POETLinear` in place by a plain ``nn.Linear`` with its effective weight.

    A Hugging Face model then saves with ``save_pretrained`` and loads in plain transformers.
    """
    for _, layer in list(poet_layers(model)):
        model = _replace(model, layer, layer.to_linear())
    return model
