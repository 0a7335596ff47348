"""The searches for Table 4's learning rates, by the same protocol as those of pretraining."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.finetuning import METHODS_OF_TABLE4, TASKS_OF_TABLE4, bases, finetuning, searched_data
from suite.scale import Scale
from suite.tuning.protocol import Point
from suite.tuning.search import search

_RATE = ("lr",)


def trial(scale: Scale, base: RunSpec, task: str, method: str, lr: float) -> FinetuningSpec:
    """A run of a search, with a seed and validation examples that the table does not use; see :func:`suite.finetuning.finetuning`."""
    return replace(finetuning(scale, base, task, method, scale.protocol.seed, lr), data=searched_data(scale))


def is_trial(scale: Scale, spec: FinetuningSpec) -> bool:
    """Whether a run is a trial that a search of the scale may ask for, at whatever rate."""
    if spec.task not in TASKS_OF_TABLE4 or spec.method not in METHODS_OF_TABLE4:
        return False
    return any(trial(scale, base, spec.task, spec.method, spec.lr) == spec for base in bases(scale) if base.name == spec.base)


def tune(scale: Scale, base: RunSpec, task: str, run: Callable[[FinetuningSpec], dict[str, Any]]) -> list[dict[str, Any]]:
    """Search the rate of each of Table 4's methods on a task. ``run`` gives the record of a trial, and trains it if it has none.

    Returns:
        A line for each trial, in the order in which the searches asked for them.
    """
    protocol, lines = scale.protocol, []
    start = protocol.point(_RATE, {"lr": protocol.finetuning.start})
    for method in METHODS_OF_TABLE4:
        known: dict[Point, float] = {}
        while (decision := search(start, known, protocol.finetuning.trials, protocol.finetuning.at_most)).next:
            for point in decision.next:  # the search minimizes; metrics are maximized
                known[point] = -run(trial(scale, base, task, method, **protocol.rates(_RATE, point)))["metric"]
        lines += [{
            "scale": scale.name, "model": base.model, "row": base.variant, "task": task, "method": method,
            **protocol.rates(_RATE, point), "seed": protocol.seed,
            "metric": "" if math.isnan(known[point]) else -known[point],
            "chosen": "yes" if point == decision.best else "", "state": decision.state,
        } for point in decision.tried]  # fmt: skip
    return lines
