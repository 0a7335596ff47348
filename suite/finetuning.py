"""The finetuning runs of a scale: which pretrained runs, tasks, methods and seeds there are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from poet.finetuning.methods import FINETUNERS
from poet.finetuning.spec import FinetuningSpec
from poet.methods import get_method
from poet.methods.contract import scale_parameters
from poet.training.spec import RunSpec
from suite.scale import Scale, given_of

#: Section 5.2: "a consistent learning rate of 2e-5".
PRINTED_LR = 2e-5


def bases(scale: Scale) -> list[RunSpec]:
    """The pretrained runs that are finetuned: Table 2's own, of the scale's first seed."""
    given = scale.settings.finetuning
    return [scale.run(given.model, row, scale.seeds[0]) for row in given.rows]


def task_data(scale: Scale) -> dict[str, Any]:
    """What ``poet.finetuning.examples.prepare_task`` is given."""
    given = scale.settings.finetuning
    return {"source": given.source, "train": given.train, "validation": given.validation}


def task_folder(task: str, data: dict[str, Any]) -> str:
    """Name of a prepared task's folder: readable, and distinct for distinct settings."""
    return f"{task}-{hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]}"


def finetuning(scale: Scale, base: RunSpec, task: str, method: str, seed: int, lr: float = PRINTED_LR) -> FinetuningSpec:
    """One finetuning run.

    Args:
        scale: the scale.
        base: the pretrained run, one of :func:`bases`.
        task: key in ``poet.finetuning.tasks.TASKS``.
        method: key in ``poet.finetuning.methods.FINETUNERS``.
        seed: of the run.
        lr: of everything that is trained.
    """
    given, finetuner = scale.settings.finetuning, FINETUNERS[method]
    cls = get_method(finetuner.method)
    parameters = scale_parameters(cls, finetuner.parameters, scale.settings.width_divisor) | given_of(given.methods, cls)
    return FinetuningSpec(
        scale=scale.name,
        model=base.model,
        base=base.name,
        base_digest=base.digest,
        task=task,
        data=task_data(scale),
        method=method,
        parameters={name: value for name, value in parameters.items() if name not in cls.learning_rates},
        lr=lr,
        epochs=given.epochs,
        batch_rows=given.batch_rows,
        sequence_length=given.sequence_length,
        weight_decay=0.0,
        clip_norm=given.clip_norm,
        precision=scale.settings.training.precision,
        seed=seed,
    )
