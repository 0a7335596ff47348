"""What a run of the finetuning loop learns, each in a file of its own that bears its name."""

from __future__ import annotations

import importlib

from poet.finetuning.problems.contract import Problem
from poet.finetuning.spec import INFILLING
from poet.finetuning.tasks import TASKS


def problem_of(task: str) -> str:
    """The name of the problem that a task is: "classification" (or regression), "summarization" or "infilling"."""
    if task == INFILLING:
        return "infilling"
    return "classification" if TASKS[task].classes else "summarization"


def problem_class(task: str) -> type[Problem]:
    """The class of a task's problem."""
    return importlib.import_module(f"{__name__}.{problem_of(task)}").PROBLEM
