"""The data sets of Table 12."""

from poet.finetuning.tasks.contract import Task
from poet.system.registry import discover

TASKS: dict[str, Task] = discover(__name__, "TASK")
