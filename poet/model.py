"""Wrapping the linear layers of a model, merging them, and exporting them to plain ones."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from poet.checks import check_config, check_head, check_model, check_names, check_replaced
from poet.config import POETConfig
from poet.linear import POETLinear
from poet.wrapping import CONV1D, check_exclude, summary, survey, wrapping_report

#: The default of ``exclude``. A model may lack this layer.
HEAD = ("lm_head",)
_log = logging.getLogger("poet")


def poet_layers(model: nn.Module) -> Iterator[tuple[str, POETLinear]]:
    """(name, layer) of every :class:`POETLinear`, in the model's fixed order."""
    return ((name, layer) for name, layer in model.named_modules() if isinstance(layer, POETLinear))


def _replace(model: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """Replace ``old`` by ``new`` under every name (a shared layer has several), and return the model."""
    for module in list(model.modules()):
        for name, child in list(module._modules.items()):
            if child is old:
                setattr(module, name, new)
    return new if model is old else model


def apply_poet(
    model: nn.Module,
    config: POETConfig,
    exclude: Sequence[str] = HEAD,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """Replace every ``nn.Linear`` in place by a :class:`POETLinear`, and return the model.

    Weights are initialized again by ``config.init``; ``init="keep"`` keeps them, and then the model computes the same function as
    before. Biases are kept. R and P of a frozen weight are frozen. Not wrapped are layers whose weight is tied to another's, and
    subclasses of ``nn.Linear`` (such as the output projection of ``nn.MultiheadAttention``, whose weight is read directly).

    It logs which layers are wrapped, and why the others are not (logger ``poet``, :func:`poet.wrapping_report`), and warns of mistakes (:mod:`poet.checks`).

    Args:
        model: any module. Give the whole model: from a part of it, neither weights that are tied to others outside nor the whole
            model's ``save_pretrained`` can be seen.
        config: POET's hyperparameters.
        exclude: modules that are not wrapped, submodules included, by full name or by the last parts of it ("lm_head",
            "mlp.up_proj", "layers.0"). Your names replace the default: name the head again.
        generator: CPU generator; the same seed gives the same model on every device. None for torch's global one.

    Returns:
        The model; where it is itself an ``nn.Linear``, its replacement.

    Raises:
        ValueError: a block size or a budget does not fit a dimension (the sentence names the layer), nothing to replace, a name of
            ``exclude`` that no layer has, a layer with hooks, or one that keeps zeros, or a model that DDP or ``fully_shard`` wrapped.
        TypeError: ``model`` is no module, ``config`` no POETConfig, or ``exclude`` no collection of names.
    """
    check_model(model)
    check_config(config, POETConfig)
    check_names(exclude)
    if isinstance(exclude, str):
        raise TypeError(f"exclude is a sequence of names, not one: use exclude=({exclude!r},)")
    if tuple(exclude) != HEAD:
        check_exclude(model, exclude)
    surveyed = survey(model, exclude)
    chosen = [(name, layer) for name, layer, why in surveyed if not why]
    if not chosen:
        left = summary({name: why for name, _, why in surveyed}).replace("\n", "; ")
        raise ValueError(f"apply_poet found no nn.Linear to replace outside exclude={tuple(exclude)}: {left or 'no layer has a matrix'}")
    for name, linear in chosen:  # all are checked before any is replaced: an error leaves the model unchanged
        try:
            config.primitives(linear.in_features, linear.out_features)
        except ValueError as error:
            raise ValueError(f"layer {name or '(root)'}: {error}") from None
    check_replaced(config, chosen)
    check_head(model, chosen)
    _warn(config, chosen, [name for name, _, why in surveyed if why == CONV1D])
    for _, linear in chosen:
        layer = POETLinear(
            linear.in_features, linear.out_features, config, bias=linear.bias is not None, generator=generator, weight=linear.weight.detach(),
            device=linear.weight.device, dtype=linear.weight.dtype,
        )  # fmt: skip
        layer.bias = linear.bias  # the parameter itself: it may be tied to another's
        layer.train(linear.training)
        for skew in (layer.skew_r, layer.skew_p):  # a frozen weight gives frozen R and P
            if skew is not None:
                skew.requires_grad_(linear.weight.requires_grad)
        model = _replace(model, linear, layer)
    allow_saving(model, False)
    _log.info(summary(wrapping_report(model)))
    return model


def _warn(config: POETConfig, chosen: list[tuple[str, nn.Linear]], unread: list[str]) -> None:
    trained = [name for name, linear in chosen if config.init != "keep" and _looks_trained(linear.weight)]
    if trained:
        warnings.warn(
            f"apply_poet draws trained weights anew, in {len(trained)} layers ({trained[0]}, ...): POETConfig(init='keep') keeps them",
            stacklevel=3,
        )
    if unread:
        warnings.warn(f"apply_poet leaves {len(unread)} layers alone ({unread[0]}, ...), each {CONV1D}", stacklevel=3)


def _looks_trained(weight: Tensor) -> bool:
    """Whether a weight was loaded by ``from_pretrained``, which marks it, or has a gradient."""
    return getattr(weight, "_is_hf_initialized", False) or weight.grad is not None


def _savers(model: nn.Module) -> Iterator[nn.Module]:
    """Modules with POET layers and the ``save_pretrained`` of transformers."""
    return (m for m in model.modules() if hasattr(type(m), "save_pretrained") and any(poet_layers(m)))


def _refuse_saving(*arguments: object, **options: object) -> None:
    raise ValueError(
        "save_pretrained would write R and P, in whose place plain transformers draws fresh weights: call export_dense(model) first "
        "(training goes on from model.state_dict(), and in a Trainer with MergeCallback of poet.integrations.hugging_face)"
    )


def allow_saving(model: nn.Module, allowed: bool = True) -> None:
    """Allow ``save_pretrained`` to write R and P, as a checkpoint of training needs them, or forbid it again.

    :func:`apply_poet` forbids it: plain transformers would load such a folder, and initialize the weights that it lacks.
    """
    for module in model.modules():
        if vars(module).get("save_pretrained") is _refuse_saving:
            del module.save_pretrained
    for module in () if allowed else _savers(model):
        vars(module).setdefault("save_pretrained", _refuse_saving)


def merge_and_reinitialize(model: nn.Module, generator: torch.Generator | None = None) -> None:
    """Merge R and P of every POET layer into its base weight and sample new primitives (Section 3.2.3, Step 5).

    Optimizer state is not reset here: :class:`poet.optim.MergeSchedule` does both. Layers draw from the CPU generator (None: torch's global
    one) in the model's fixed order, so that equal seeds give equal primitives on every rank without communication.
    """
    for _, layer in poet_layers(model):
        layer.merge_and_reinitialize(generator)


def export_dense(model: nn.Module) -> nn.Module:
    """Replace every :class:`POETLinear` in place by a plain ``nn.Linear`` with its effective weight, and return the model.

    A Hugging Face model then saves with ``save_pretrained`` and loads in plain transformers. Weights and biases are copies: they
    require gradients, and a bias is no longer tied. Between merges R and P are those of the Neumann series: with ``merge="exact"``, merge first.
    """
    allow_saving(model)
    for _, layer in list(poet_layers(model)):
        model = _replace(model, layer, layer.to_linear())
    return model
