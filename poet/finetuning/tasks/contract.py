"""The interface of a finetuning task.

A task is one file in ``glue/`` or ``summaries/`` that defines ``TASK``, an instance of a subclass of :class:`Task`. The
registry finds it; loading, tables and the command line then know it by its name.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from poet.data.errors import DataError

SPLITS = ("train", "validation")
HIGHEST_SCORE = 5.0
#: Characters at which ``str.splitlines`` cuts and which JSON does not escape.
_LINE_ENDS = dict.fromkeys((0x85, 0x2028, 0x2029), " ")


@dataclass(frozen=True, slots=True)
class Example:
    """The texts that a model reads, and the answer that it should give.

    Attributes:
        texts: one text or two; for a summary, the document.
        target: a class (from 0), a score, or a summary.
    """

    texts: tuple[str, ...]
    target: int | float | str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where examples come from.

    Attributes:
        kind: "real" (the task's own set), "other text" (real texts and labels of another set), or "stand-in" (made by a rule).
        sentence: what tables show; it begins with the kind.
    """

    kind: Literal["real", "other text", "stand-in"]
    sentence: str


@dataclass(frozen=True, slots=True)
class TaskData:
    """A task's examples. Each split is ordered by hashes, so that any first part is a fair sample of it."""

    name: str
    train: list[Example]
    validation: list[Example]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Tsv:
    """The layout of one of GLUE's own files, which are tab-separated and quote nothing.

    Attributes:
        folder: its name in GLUE's archive.
        texts: names of the columns with the texts, or their numbers if the file has no header.
        target: name or number of the column with the class or score.
        validation: name of the file of the validation split.
    """

    folder: str
    texts: tuple[str | int, ...]
    target: str | int
    validation: str = "dev.tsv"


class Task(ABC):
    """One column of Table 4, or one data set of Table 12.

    Class attributes:
        name: the registry's key.
        label: what tables print.
        metric: "accuracy", "matthews", "pearson" or "rouge".
        classes: number of classes; 1 for a score, 0 for a summary.
        class_names: of the real set, in the order of its numbers; empty for a score or a summary.
        columns: names of the columns with the texts in the real set.
        target: name of its column with the class, score or summary.
        repository, configuration, revision: of the real set on the hub.
        validation: the real split to measure on. Labels of GLUE's test splits are not public; for summaries it is this suite's choice.
        tsv: the layout of GLUE's own files; None for summaries.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    metric: ClassVar[Literal["accuracy", "matthews", "pearson", "rouge"]]
    classes: ClassVar[int]
    class_names: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[str, ...]]
    target: ClassVar[str]
    repository: ClassVar[str]
    configuration: ClassVar[str | None] = None
    revision: ClassVar[str | None] = None
    validation: ClassVar[str] = "validation"
    tsv: ClassVar[Tsv | None] = None

    @abstractmethod
    def offline(self, cache: Path) -> TaskData:
        """The examples that a machine can get which reaches only the package index.

        The docstring of each task states the rule by which they are made, and their balance.

        Args:
            cache: folder for fetched and made files.

        Raises:
            DataError: a needed file can be neither found nor fetched, or is damaged.
        """

    def example(self, texts: Iterable[Any], target: Any, where: str) -> Example:
        """An example of the real set. Unicode's own line ends become spaces, because prepared examples are stored one per line.

        Raises:
            DataError: a text is not a string, or the target is not valid for this task.
        """
        texts = tuple(texts)
        if not all(isinstance(text, str) for text in texts):
            raise DataError(f"{where}: an example of the task {self.name} lacks a text: fetch the file again")
        target = self._read(target, where)
        return Example(tuple(text.translate(_LINE_ENDS) for text in texts), target.translate(_LINE_ENDS) if isinstance(target, str) else target)

    def _read(self, target: Any, where: str) -> int | float | str:
        """The target, checked and converted to the task's type."""
        try:
            if not self.classes:
                read = target if isinstance(target, str) else None
            elif self.classes == 1:
                read = score if 0 <= (score := float(target)) <= HIGHEST_SCORE else None
            else:
                number = self.class_names.index(target) if target in self.class_names else int(target)
                read = number if 0 <= number < self.classes else None
        except (TypeError, ValueError):
            read = None
        if read is None:
            raise DataError(f"{where}: {target!r} is no target of the task {self.name}: is this the file of another task or split?")
        return read


def place(example: Example) -> bytes:
    """The SHA-256 of an example as one line of JSON, by which examples are ordered."""
    return hashlib.sha256(json.dumps([example.texts, example.target]).encode() + b"\n").digest()
