"""POET's optimizer recipe: two learning rates and a ramp of the clipping threshold (Appendix "Training details"), merges (Section 3.2.3, Step 5), and resets of state, as in the authors' code."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from poet.checks import check_config, check_index, check_optimizer, check_resets, check_state, check_trained, check_turned, check_wrapped
from poet.config import POETConfig
from poet.model import merge_and_reinitialize, poet_layers


def poet_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of R and P of every POET layer, frozen ones included; for blocks (k, b(b-1)/2) each."""
    layers = (layer for _, layer in poet_layers(model))
    return [skew for layer in layers for skew in (layer.skew_r, layer.skew_p) if skew is not None]


def parameter_groups(model: nn.Module, *, lr: float, poet_lr: float, weight_decay: float = 0.01) -> list[dict]:
    """Two groups for any torch optimizer that takes groups of parameters of any shape: POET's parameters, and everything else that is trained.

    Args:
        model: a POET model. Frozen parameters outside R and P are left out.
        lr: "lr (base)" of Tables 9 and 10: embeddings, head, norms, biases.
        poet_lr: "lr (POET)" of the same tables.
        weight_decay: of the base group. POET's group has none: decay would shrink R and P towards the identity.

    Returns:
        The group of R and P, then the base group, each a dict with ``params``, ``lr`` and ``weight_decay``.

    Raises:
        ValueError: the model has no POET layer, or one whose base weight is not frozen.
    """
    check_wrapped(model)
    check_trained(model)
    factors = poet_parameters(model)
    own = {id(p) for p in factors}
    base = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    return [
        {"params": factors, "lr": poet_lr, "weight_decay": 0.0},
        {"params": base, "lr": lr, "weight_decay": weight_decay},
    ]


def reset_state(optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter]) -> None:
    """Zero every tensor and number of the optimizer's state for ``parameters``, step counts included.

    After a merge, the moments of the old R and P belong to coordinates that no longer exist. An fp32 master copy that is not zeroed
    would apply the merged rotation twice.

    Raises:
        TypeError: an entry of the state is neither a tensor, a number nor None.
        ValueError: the state is of 8 bits, or the optimizer's groups count steps.
    """
    check_state(optimizer)
    tensors = []
    for parameter in parameters:
        state = optimizer.state.get(parameter, {})
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                tensors.append(value)
            elif isinstance(value, (int, float)):
                state[key] = type(value)(0)
            elif value is not None:
                found = f"{type(optimizer).__name__} keeps {key!r} as a {type(value).__name__}"
                raise TypeError(f"{found}, which a merge cannot reset: use an optimizer whose state are tensors, or POETConfig(reset_state=False)")
    if tensors:
        torch._foreach_zero_(tensors)


class MergeSchedule:
    """Merges every T_m = ``config.merge_every`` optimizer steps (Section 3.2.3, Step 5). It is stateless: the caller passes the step.

    What would train silently wrong is refused or warned of (:mod:`poet.checks`), at the start and at each merge.

    Args:
        model: a POET model.
        config: its configuration (``merge_every``, ``reset_state``, ``clip_ramp_*``).
        optimizer: the optimizer whose state is reset at a merge.
        seed: merge number i draws from a generator seeded by (seed, i): a resumed run or another rank draws the same without communication.

    Raises:
        ValueError: the model has no POET layer, or none of this configuration; or the optimizer cannot train R and P or be reset.
        TypeError: ``config`` is no POETConfig, ``optimizer`` none of torch, or ``seed`` no int.
    """

    def __init__(self, model: nn.Module, config: POETConfig, optimizer: torch.optim.Optimizer, seed: int = 0) -> None:
        check_config(config, POETConfig)
        check_index(seed)
        check_wrapped(model)
        different = [(name, config.difference(layer.config.meaning())) for name, layer in poet_layers(model)]
        if all(field for _, field in different):
            name, field = different[0]
            raise ValueError(f"MergeSchedule got another POETConfig than the model's: layer {name or '(root)'} has {field}")
        check_trained(model)
        check_optimizer(model, optimizer)
        check_resets(optimizer, config.reset_state)
        self.model, self.config, self.optimizer, self.seed = model, config, optimizer, seed

    def clip_norm(self, step: int, base: float) -> float:
        """Gradient-clipping threshold of ``step`` (from 0): ``base``, lowered for ``clip_ramp_steps`` after a merge (:class:`poet.POETConfig`)."""
        since_merge = step % self.config.merge_every
        ramp = self.config.clip_ramp_steps
        if step < self.config.merge_every or since_merge >= ramp:
            return base
        start = self.config.clip_ramp_start
        return base * (start + (1 - start) * since_merge / ramp)

    def after_step(self, step: int) -> bool:
        """Merge if a merge is due; to be called after each optimizer step.

        Args:
            step: number of the optimizer step that was done, from 0 over the whole training: a count that starts anew draws the same primitives.

        Returns:
            Whether the model was merged.

        Raises:
            TypeError: ``step`` is no int, or the optimizer has state that cannot be reset; see :func:`reset_state`.
            ValueError: the model no longer has a POET layer, or one whose base weight is not frozen, or the optimizer has none of its R and P or state that cannot be reset.
        """
        check_wrapped(self.model)
        check_index(step)
        check_state(self.optimizer, self.config.reset_state)
        if (step + 1) % self.config.merge_every:
            return False
        check_optimizer(self.model, self.optimizer)
        check_turned(self.model)
        index = (step + 1) // self.config.merge_every
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + index) % 2**63)
        if self.config.reset_state:  # first: where it is refused, the model is not merged
            reset_state(self.optimizer, poet_parameters(self.model))
        merge_and_reinitialize(self.model, generator)
        return True
