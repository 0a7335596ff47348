"""The eight tasks of Table 4, in its order."""

from poet.finetuning.tasks.contract import Task
from poet.system.registry import discover

TASKS: dict[str, Task] = discover(__name__, "TASK")
