"""The problems that a run of the finetuning loop can learn. Each has a file with its name."""

from __future__ import annotations

import importlib

from poet.finetuning.problems.contract import Problem
from poet.finetuning.spec import INFILLING
from poet.finetuning.tasks import TASKS


def problem_of(task: str) -> str:
    """The name of a task's problem: "classification" (which includes regression), "summarization" or "infilling"."""
    if task == INFILLING:
        return "infilling"
    return "classification" if TASKS[task].classes else "summarization"


def problem_class(task: str) -> type[Problem]:
    """The class of a task's problem."""
    return importlib.import_module(f"{__name__}.{problem_of(task)}").PROBLEM
