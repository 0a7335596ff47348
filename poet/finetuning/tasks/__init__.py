"""Tasks of finetuning. Each file in ``glue/`` or ``summaries/`` that defines ``TASK`` is one; :data:`TASKS` holds them by name."""

from pathlib import Path

from poet.data.errors import DataError
from poet.finetuning.tasks import loading
from poet.finetuning.tasks.contract import Example, Origin, Task, TaskData
from poet.finetuning.tasks.glue import TASKS as _GLUE
from poet.finetuning.tasks.summaries import TASKS as _SUMMARIES

TASKS: dict[str, Task] = _GLUE | _SUMMARIES


def load_task(name: str, source: str, cache: Path, *, limit: dict[str, int] | None = None) -> TaskData:
    """The examples of the task of that name; the rest is :func:`poet.finetuning.tasks.loading.load`'s."""
    if name not in TASKS:
        raise DataError(f"there is no task {name!r}: known are {', '.join(TASKS)}")
    return loading.load(TASKS[name], source, cache, limit=limit)


__all__ = ["TASKS", "Example", "Origin", "Task", "TaskData", "load_task"]
