"""Tasks of finetuning. Each file in ``glue/`` or ``summaries/`` that defines ``TASK`` is one; :data:`TASKS` holds them by name."""

from dataclasses import replace
from pathlib import Path

from poet.data.errors import DataError
from poet.finetuning.tasks import glue, summaries
from poet.finetuning.tasks.contract import Example, Origin, Task, TaskData
from poet.finetuning.tasks.layouts import from_folder, from_hub, ways
from poet.system.registry import discover

TASKS: dict[str, Task] = discover(glue.__name__, "TASK") | discover(summaries.__name__, "TASK")
FOLDER = "folder:"


def load_task(name: str, source: str, cache: Path, *, limit: dict[str, int] | None = None) -> TaskData:
    """A task's examples.

    Args:
        name: key in :data:`TASKS`.
        source: "hub" (the real set through ``datasets``), "folder:<path>" (the real set in a local folder, as parquet files
            or GLUE's own), or "offline" (what the package index and the default corpus give).
        cache: folder for what is fetched or made.
        limit: the largest numbers of examples of "train" and "validation": the first ones in the order of their hashes.

    Raises:
        DataError: the examples cannot be found or fetched, or are damaged; or the task or the source is unknown.
    """
    if name not in TASKS:
        raise DataError(f"there is no task {name!r}: known are {', '.join(TASKS)}")
    task, limit = TASKS[name], limit or {}
    if source == "hub":
        return from_hub(task, cache, limit)
    if source.startswith(FOLDER):
        return from_folder(task, Path(source.removeprefix(FOLDER)), limit)
    if source != "offline":
        raise DataError(f"the source {source!r} of the task {name} is unknown: say hub, {FOLDER}<path> or offline")
    try:
        data = task.offline(cache)
    except DataError as error:
        raise DataError(f"the task {name} cannot be had offline: {error}; else {ways(task)}") from error
    return replace(data, train=data.train[: limit.get("train")], validation=data.validation[: limit.get("validation")])


__all__ = ["TASKS", "Example", "Origin", "Task", "TaskData", "load_task"]
