"""One way to a task's examples, wherever they come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from poet.data.errors import DataError
from poet.finetuning.tasks.contract import SPLITS, Task, TaskData
from poet.finetuning.tasks.layouts import from_folder, from_hub, ways

FOLDER = "folder:"


def load(task: Task, source: str, cache: Path, *, limit: dict[str, int] | None = None) -> TaskData:
    """A task's examples.

    Args:
        task: which one.
        source: "hub" (the real set through ``datasets``), "folder:<path>" (the real set in a local folder, as parquet files
            or GLUE's own), or "offline" (what the package index and the default corpus give).
        cache: folder for what is fetched or made.
        limit: at most so many examples of "train" and of "validation", the first ones in an order that hashes fix.

    Raises:
        DataError: the examples cannot be had, or are damaged; or the source or a split is unknown.
    """
    limit = limit or {}
    if unknown := sorted(set(limit) - set(SPLITS)):
        raise DataError(f"the limit of the task {task.name} names the split {unknown[0]!r}: splits are train and validation")
    if source == "hub":
        return from_hub(task, cache, limit)
    if source.startswith(FOLDER):
        return from_folder(task, Path(source.removeprefix(FOLDER)), limit)
    if source != "offline":
        raise DataError(f"the source {source!r} of the task {task.name} is unknown: say hub, {FOLDER}<path> or offline")
    try:
        data = task.offline(cache)
    except DataError as error:
        raise DataError(f"the task {task.name} cannot be had offline: {error}; else {ways(task)}") from error
    return replace(data, train=data.train[: limit.get("train")], validation=data.validation[: limit.get("validation")])
