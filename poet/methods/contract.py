"""The interface of a training method.

A method is one file in this folder that defines ``METHOD``, a subclass of :class:`Method`. The registry finds it, and the
conformance tests run over it. Every comparison table has its rows (:class:`Row`), unless they have ``in_tables=False``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

import torch
from torch import nn

from poet.system.validation import parse


def scales_with_width(default: int) -> Any:
    """A dataclass field that counts coordinates of a weight (a block size, a rank).

    A model whose widths are 1/16 of the paper's uses 1/16 of the value, so that its ratio to the width stays the paper's.
    """
    return field(default=default, metadata={"scales_with_width": True})


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a comparison table.

    Attributes:
        key: short name in paths and tables ("poet-bs-b64").
        label: the name that a reader sees.
        parameters: values that differ from the method's defaults, at the paper's widths (:func:`scales_with_width`).
        ffn: "standard", or "divisible" for rows that the paper trains with a d_ff that the block sizes divide.
        in_tables: whether comparison tables show it; otherwise only figures and controls use it.
    """

    key: str
    label: str
    parameters: dict[str, Any]
    ffn: str = "standard"
    in_tables: bool = True

    def __post_init__(self) -> None:
        if self.ffn not in ("standard", "divisible"):
            raise ValueError(f"Row.ffn is 'standard' or 'divisible', got {self.ffn!r}")


class Method(ABC):
    """A way to train a model. One instance belongs to one run.

    Class attributes:
        name: the registry's key.
        Parameters: frozen dataclass of the method's hyperparameters; ``lr`` is the peak learning rate of embeddings,
            head and norms (and of the weights, where they are trained directly).
        learning_rates: names of the fields of ``Parameters`` that are learning rates, for sweeps.
        rows: the settings of the method that artifacts use, each with its key.
        shards_state: whether its optimizers are AdamW with a state that may be divided among the processes of a run.

    Args:
        parameters: an instance of ``Parameters``.
        weight_decay: the run's decoupled weight decay.
    """

    name: ClassVar[str]
    Parameters: ClassVar[type]
    learning_rates: ClassVar[tuple[str, ...]] = ("lr",)
    rows: ClassVar[tuple[Row, ...]] = ()
    shards_state: ClassVar[bool] = False

    def __init__(self, parameters: Any, *, weight_decay: float = 0.0) -> None:
        self.parameters, self.weight_decay = parameters, weight_decay

    @staticmethod
    def check_layer(parameters: Any, in_features: int, out_features: int) -> None:
        """Refuse parameters that a linear layer of this shape cannot have, before anything is built.

        Raises:
            ValueError: the layer cannot have these parameters.
        """

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        """Reparameterize, freeze or re-initialize the model (in place where possible) and return it."""
        return model

    @abstractmethod
    def optimizers(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """The optimizers of the prepared model; together they cover every trainable parameter once."""

    def clip_norm(self, step: int, base: float) -> float:
        """Gradient-clipping threshold at ``step`` (from 0); ``base`` is the run's own threshold."""
        return base

    def after_step(self, step: int) -> bool:
        """Called after optimizer step ``step`` (from 0). It depends on the step and the seed alone, so that a run can be resumed.

        Returns:
            Whether it changed weights. If so, the processes of a run compare theirs.
        """
        return False

    def export(self, model: nn.Module) -> nn.Module:
        """A plain model with the trained function, which ``save_pretrained`` and plain transformers understand."""
        return model


def parse_parameters(method: type[Method], values: dict[str, Any]) -> Any:
    """``method.Parameters(**values)``, checked.

    Raises:
        ConfigError: the method has no parameter of a name, or refuses a value or its type.
    """
    return parse(method.Parameters, values, f"method {method.name}")


def scale_parameters(method: type[Method], values: dict[str, Any], width_divisor: int) -> dict[str, Any]:
    """All parameters of a method, with those that count coordinates divided by ``width_divisor``.

    Raises:
        ValueError: a coordinate count is not divisible.
    """
    complete = asdict(parse_parameters(method, values))
    for f in fields(method.Parameters):
        value = complete[f.name]
        if not f.metadata.get("scales_with_width") or value is None:
            continue
        if value % width_divisor:
            raise ValueError(f"{method.name}: {f.name}={value} is not divisible by the scale's divisor {width_divisor}")
        complete[f.name] = value // width_divisor
    return complete


#: Layers whose parameters every method trains alike and Table 2 does not count.
_UNCOUNTED = ("embed_tokens", "norm", "lm_head")


def is_counted(name: str) -> bool:
    """Whether Table 2 counts the parameter of this name: linear layers yes; embeddings, head and norms no."""
    return not any(part in name for part in _UNCOUNTED)


def train_uncounted(model: nn.Module) -> list[nn.Parameter]:
    """Unfreeze embeddings, head and norms, which adapter libraries freeze, and return them."""
    parameters = [p for name, p in model.named_parameters() if not is_counted(name)]
    for p in parameters:
        p.requires_grad_(True)
    return parameters


def count_trainable(model: nn.Module) -> int:
    """Trainable parameters as Table 2 counts them: those of the linear layers."""
    return sum(p.numel() for name, p in model.named_parameters() if p.requires_grad and is_counted(name))


class UncorrectedEpsAdamW(torch.optim.AdamW):
    """AdamW that adds eps to the root of the second moment before the bias correction, as the authors' optimizer does.

    Torch adds it after the correction. Added before, it has the effect of eps / sqrt(1 - beta2^t) at step t: 32 times as much at the
    first step, and at the first step after a reset. All parameters of a group have to be reset together, because they share t.
    """

    def step(self, closure=None):
        """One optimization step; see ``torch.optim.Optimizer.step``."""
        written = [group["eps"] for group in self.param_groups]
        for group in self.param_groups:
            group["eps"] /= math.sqrt(1 - group["betas"][1] ** (self._steps_made(group) + 1))
        try:
            return super().step(closure)
        finally:  # checkpoints store the constant eps
            for group, eps in zip(self.param_groups, written, strict=True):
                group["eps"] = eps

    def _steps_made(self, group: dict[str, Any]) -> int:
        return next((int(state["step"]) for p in group["params"] if (state := self.state.get(p))), 0)


#: AdamW by where eps is added to the root of the second moment: after the bias correction, or before it.
ADAM_EPS = {"corrected": torch.optim.AdamW, "uncorrected": UncorrectedEpsAdamW}


def adamw(
    groups: list[dict] | list[nn.Parameter], lr: float, weight_decay: float, eps: str = "corrected"
) -> torch.optim.AdamW:
    """AdamW with betas (0.9, 0.999) and eps 1e-6, which are those of the authors' code.

    By the choice of this suite, eps is added after the bias correction, as in AdamW's paper and in torch. The authors' optimizer,
    which is GaLore's, adds it before: ``eps="uncorrected"``, which a control trains (``analyses.controls.cells``).

    Args:
        groups: parameters, or groups of them.
        lr, weight_decay: of groups that do not set their own.
        eps: a key of :data:`ADAM_EPS`.
    """
    return ADAM_EPS[eps](groups, lr=lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=weight_decay, fused=True)
