"""How a pretrained model is finetuned: in full, by LoRA, by OFT, or by POET.

Each is a method of pretraining (``poet.methods``) on the model's body. LoRA and OFT do not train embeddings and norms here, as in their
own papers; full finetuning and POET do, as in Section 5.2 ("both methods update the entire model"). Every method trains the new head
of a classification task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from poet.finetuning.spec import FinetuningSpec
from poet.methods import get_method
from poet.methods.contract import Method, is_counted, parse_parameters
from poet.training.errors import RunError
from poet.training.seeds import derive


@dataclass(frozen=True, slots=True)
class Finetuner:
    """A row of Tables 4 and 12.

    Attributes:
        label: the name that a reader sees.
        method: key in ``poet.methods``.
        parameters: values that differ from that method's defaults, at the paper's widths.
        whole: whether embeddings and norms are trained.
    """

    label: str
    method: str
    parameters: dict[str, Any]
    whole: bool


#: By key, in the order of the paper's tables. OFT's and POET's budgets are those that Table 12 prints; Table 4 prints none.
FINETUNERS = {
    "full": Finetuner("Full FT", "adamw", {}, True),
    "lora": Finetuner("LoRA", "lora", {"rank": 32}, False),
    "oft": Finetuner("OFT", "oft", {"block_size": 64}, False),
    "poet": Finetuner("POET", "poet", {"variant": "fs", "budget": 0.5, "init": "keep"}, True),
}


def finetuned(model: nn.Module, spec: FinetuningSpec) -> Method:
    """Prepare a pretrained model in place, and return the method that trains it.

    Until the first step, the model computes the same as before.

    Args:
        model: of transformers, with a head; only the body under its ``base_model_prefix`` is wrapped.
        spec: the run.

    Raises:
        RunError: the method refuses its parameters, or a layer's shape with them.
    """
    finetuner = FINETUNERS[spec.method]
    cls = get_method(finetuner.method)
    rates = dict.fromkeys(cls.learning_rates, spec.lr)
    try:
        method = cls(parse_parameters(cls, {**spec.parameters, **rates}), weight_decay=spec.weight_decay)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive("method", spec.seed))
            body = method.prepare(model.base_model, derive("method", spec.seed))
    except ValueError as error:
        raise RunError(f"run {spec.name}: {error}") from None
    if not finetuner.whole:
        for name, parameter in body.named_parameters():
            if not is_counted(name):
                parameter.requires_grad_(False)
    setattr(model, model.base_model_prefix, body)
    return method


def count_body(model: nn.Module) -> int:
    """Trainable parameters of a prepared model's body, without the head, which is the same for every method."""
    return sum(p.numel() for p in getattr(model, model.base_model_prefix).parameters() if p.requires_grad)
