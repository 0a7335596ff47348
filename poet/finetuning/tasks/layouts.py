"""The real sets, read from the hub or from a local folder of parquet files or GLUE's own files."""

from __future__ import annotations

import csv
import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path

from poet.data.errors import DataError
from poet.finetuning.tasks.contract import SPLITS, Example, Origin, Task, TaskData, place

#: Share of the rows of a GLUE file that may lack a column: the archive's QQP has a few, and the hub leaves them out too.
SHORT_ROWS = 0.001


def from_hub(task: Task, cache: Path, limit: dict[str, int]) -> TaskData:
    """A task's real set from the hub, kept in ``<cache>/hub``.

    Raises:
        DataError: it cannot be reached.
    """
    import datasets  # here, because the local ways do without
    from huggingface_hub.errors import HTTPError

    found = {}
    for split, there in _splits(task).items():
        try:
            rows = datasets.load_dataset(
                task.repository, task.configuration, split=there, revision=task.revision, cache_dir=str(cache / "hub")
            )
        except (OSError, RuntimeError, ValueError, HTTPError, datasets.exceptions.DatasetsError) as error:
            raise DataError(f"cannot read {task.repository} from the hub ({_short(error)}): {ways(task)}") from error
        where = f"{task.repository} on the hub"
        examples = (task.example((row[name] for name in task.columns), row[task.target], where) for row in rows)
        found[split] = ordered(examples, limit.get(split))
    return TaskData(task.name, **found, origin=_real(task, "the hub"))


def from_folder(task: Task, folder: Path, limit: dict[str, int]) -> TaskData:
    """A task's real set from a local folder.

    The files are looked for in the folder itself and in its subfolders with the names of the hub and of GLUE's archive, so that
    one copy of either serves all tasks.

    Raises:
        DataError: the files are missing, damaged, or those of another task.
    """
    found = {}
    for split, there in _splits(task).items():
        parquet, tsv = _parquet(task, folder, there), _tsv(task, folder, split)
        if not parquet and not tsv:
            raise DataError(f"the task {task.name} has no {split} split in {folder}: {ways(task)}")
        examples = (e for path in parquet for e in _read_parquet(task, path)) if parquet else _read_tsv(task, tsv)
        found[split] = ordered(examples, limit.get(split))
    return TaskData(task.name, **found, origin=_real(task, "a local folder"))


def ordered(examples: Iterable[Example], limit: int | None) -> list[Example]:
    """The first examples in the order of their hashes, or all of them."""
    return sorted(examples, key=place) if limit is None else heapq.nsmallest(limit, examples, key=place)


def ways(task: Task) -> str:
    """How a user can get a task's real set: the end of an error's sentence."""
    layout = f"{task.validation}-*.parquet and train-*.parquet"
    layout += f", or {task.tsv.folder}/train.tsv and {task.tsv.folder}/{task.tsv.validation}" if task.tsv else ""
    return (
        f'connect to the network and take the task {task.name} from the source "hub", '
        f'or name a folder that holds {layout} as the source "folder:<path>"'
    )


def _splits(task: Task) -> dict[str, str]:
    return dict(zip(SPLITS, ("train", task.validation), strict=True))


def _real(task: Task, place: str) -> Origin:
    name = " ".join(filter(None, (task.repository, task.configuration)))
    return Origin("real", f"real: {name} from {place}, measured on its split {task.validation}")


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _parquet(task: Task, folder: Path, split: str) -> list[Path]:
    """Files of a split, as the hub's repositories and their converted branches name them."""
    names = (f"{split}-*.parquet", f"{split}.parquet", f"{split}/*.parquet")
    below = filter(None, (task.configuration, task.name, "data", "default", "."))
    groups = (sorted((folder / part).glob(name)) for part in below for name in names)
    return next(filter(None, groups), [])


def _tsv(task: Task, folder: Path, split: str) -> Path | None:
    if task.tsv is None:
        return None
    name = "train.tsv" if split == "train" else task.tsv.validation
    return next((path for path in (folder / task.tsv.folder / name, folder / name) if path.exists()), None)


def _read_parquet(task: Task, path: Path) -> Iterator[Example]:
    import pyarrow
    import pyarrow.parquet

    names = (*task.columns, task.target)
    try:
        file = pyarrow.parquet.ParquetFile(path)
        if missing := sorted(set(names) - set(file.schema_arrow.names)):
            raise DataError(f"{path} has no column {missing[0]!r}: is this the task {task.name}?")
        for batch in file.iter_batches(columns=list(names)):
            for row in batch.to_pylist():
                yield task.example((row[name] for name in task.columns), row[task.target], str(path))
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} is damaged ({_short(error)}): fetch it again") from error


def _read_tsv(task: Task, path: Path) -> Iterator[Example]:
    columns = (*task.tsv.texts, task.tsv.target)
    rows = short = 0
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            if isinstance(columns[0], str):
                header = next(lines, [])
                if missing := [name for name in columns if name not in header]:
                    raise DataError(f"{path} has no column {missing[0]!r}: is this the task {task.name}?")
                columns = [header.index(name) for name in columns]
            for row in lines:
                rows += 1
                if len(row) <= max(columns):
                    short += 1
                    continue
                *texts, target = (row[column] for column in columns)
                yield task.example(texts, target, str(path))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is damaged ({_short(error)}): fetch it again") from error
    if not rows or short > SHORT_ROWS * rows:
        raise DataError(f"{path} is damaged ({short} of {rows} rows lack a column): fetch it again")
