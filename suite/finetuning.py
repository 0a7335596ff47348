"""The finetuning runs of a scale: which pretrained runs, tasks, methods and seeds there are."""

import csv
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

from poet.finetuning.methods import FINETUNERS
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from poet.methods import get_method
from poet.methods.contract import scale_parameters
from poet.system.validation import ConfigError
from poet.training.spec import RunSpec
from suite.scale import ROOT, Scale, check_layers, given_of
from suite.settings import OnTasks

#: Section 5.2: "a consistent learning rate of 2e-5".
PRINTED_LR = 2e-5
#: The tasks and methods of Table 4.
TASKS_OF_TABLE4 = tuple(name for name, task in TASKS.items() if task.metric != "rouge")
METHODS_OF_TABLE4 = ("full", "oft", "poet")


def bases(scale: Scale) -> list[RunSpec]:
    """The pretrained runs that Table 4 finetunes: runs of Table 2, with the scale's first seed."""
    given = scale.settings.finetuning
    return [scale.run(given.model, row, scale.seeds[0]) for row in given.rows]


def task_data(given: OnTasks) -> dict[str, Any]:
    """The description of a task's examples, for ``poet.finetuning.examples.prepare_task``."""
    return given.model_dump(include={"source", "train", "validation"})


def searched_data(scale: Scale) -> dict[str, Any]:
    """The description for the search of Table 4's rates, which measures on held-out training examples. Runs train on these only where fewer than a tenth of the split are left over."""
    return task_data(scale.settings.finetuning) | {"split": "train"}


def on_tasks(scale: Scale, given: OnTasks) -> dict[str, Any]:
    """The spec fields that all finetuning runs of a table share, from the scale's file."""
    same = given.model_dump(include={"epochs", "batch_rows", "sequence_length", "clip_norm"})
    return {"scale": scale.name, "data": task_data(given), "precision": scale.settings.training.precision, **same}


def task_folder(task: str, data: dict[str, Any]) -> str:
    """Name of a prepared task's folder: readable, and distinct for distinct settings."""
    return f"{task}-{hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]}"


def method_parameters(scale: Scale, method: str, given: OnTasks) -> dict[str, Any]:
    """The parameters of a method in ``poet.finetuning.methods.FINETUNERS`` at a scale, without its learning rates."""
    finetuner = FINETUNERS[method]
    cls = get_method(finetuner.method)
    parameters = scale_parameters(cls, finetuner.parameters, scale.settings.width_divisor) | given_of(given.methods, cls)
    return {name: value for name, value in parameters.items() if name not in cls.learning_rates}


def finetuning(scale: Scale, base: RunSpec, task: str, method: str, seed: int, lr: float) -> FinetuningSpec:
    """The finetuning run of a pretrained run (one of :func:`bases`) on a task by a method (a key of ``FINETUNERS``), all trained parameters at one rate.

    Raises:
        ConfigError: the method refuses the scale's parameters, or a layer's shape with them.
    """
    given, parameters = scale.settings.finetuning, method_parameters(scale, method, scale.settings.finetuning)
    check_layers(f"finetuning of model {base.model} by {method}", get_method(FINETUNERS[method].method), parameters, base.architecture)
    return FinetuningSpec(
        model=base.model, base=base.name, base_digest=base.digest, task=task, method=method, parameters=parameters,
        lr=lr, weight_decay=0.0, seed=seed, **on_tasks(scale, given),
    )  # fmt: skip


def rates_path(scale: str) -> Path:
    """The file of the tuned learning rates of a scale's finetuning."""
    return ROOT / "analyses" / "recorded" / scale / "finetuning_rates.csv"


def tuned_rates(scale: Scale) -> dict[tuple[str, str, str], tuple[float, bool]]:
    """The chosen learning rate, and whether it lies inside the rates tried, by (row of the pretrained run, task, method).

    Empty if the scale's finetuning was not tuned, or only on another model, or only in part: methods are compared only if all were tuned.

    Raises:
        ConfigError: the table cannot be read.
    """
    path = rates_path(scale.name)
    if not path.exists():
        return {}
    try:
        with open(path, newline="") as file:
            chosen = [line for line in csv.DictReader(file) if line["chosen"] and line["model"] == scale.settings.finetuning.model]
        found = {(line["row"], line["task"], line["method"]): (float(line["lr"]), line["state"] == "finished") for line in chosen}
    except (KeyError, ValueError) as error:
        why = f"no column {error}" if isinstance(error, KeyError) else error
        raise ConfigError(f"{path.relative_to(ROOT)}: {why}: mend it, or put it back from git") from None
    wanted = itertools.product(scale.settings.finetuning.rows, TASKS_OF_TABLE4, METHODS_OF_TABLE4)
    return found if set(wanted) <= set(found) else {}
