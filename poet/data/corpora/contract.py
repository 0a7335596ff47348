"""The interface of a corpus.

A corpus is one file in this folder that defines ``CORPUS``, a subclass of :class:`Corpus` or :class:`ShardedCorpus`. The
registry finds it; descriptions of data sets, preparation, estimates and training then know it by its name.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a corpus, from which costs are estimated.

    Attributes:
        documents: number of documents, by split.
        text_bytes, tokens, source_bytes: of a document, on average; the source is the compressed text that is read.
    """

    documents: dict[str, int]
    text_bytes: float
    tokens: float
    source_bytes: float


class Corpus(ABC):
    """A text with a "train" and a "validation" split. One instance serves one data set.

    Class attributes:
        name: the registry's key.
        versions: "format", and others as needed: raise one whenever equal descriptions give other rows or another
            ``meta.json`` than before.
        size: for estimates.
        reads_folder: whether a description may name a folder ("path") that holds the text.

    Args:
        path: the folder that holds the text; None where the corpus finds its text itself.
        cache: folder for fetched files, shared by all data sets; None for estimates and training.
        processes: how many processes may share the work of cleaning; the text does not depend on it.
    """

    name: ClassVar[str]
    versions: ClassVar[dict[str, int]]
    size: ClassVar[Size]
    reads_folder: ClassVar[bool] = False

    def __init__(self, path: str | None = None, cache: Path | None = None, processes: int = 2) -> None:
        self.path, self.cache, self.processes = path, cache, processes

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Values that identify the text, found without reading it. Where they change, prepared rows are made again."""

    def details(self) -> dict[str, Any]:
        """Further facts about the text for ``meta.json``."""
        return {}

    @abstractmethod
    def texts(self, split: str) -> Iterator[str]:
        """Yield the documents of a split, the same ones in the same order each time.

        Raises:
            DataError: the text cannot be found or fetched, or is damaged.
        """


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a corpus.

    Attributes:
        name: its file name in the corpus.
        stem: name of the files of its rows, without ending.
        url: path or address where it is read.
        version: its size or revision, by which another file in its place is noticed.
        bytes: its compressed size, if it is local.
        siblings: number of shards of its whole split, if the name states it.
    """

    name: str
    stem: str
    url: str
    version: int | str
    bytes: int | None = None
    siblings: int | None = None


class ShardedCorpus(Corpus):
    """A corpus too large for one file: rows of its train split are made and read shard by shard, or streamed."""

    @abstractmethod
    def shards(self, split: str) -> list[Shard]:
        """The shards of a split in their order; raises DataError where there are none."""

    @abstractmethod
    def documents(self, shard: Shard) -> Iterator[Any]:
        """Yield the documents of a shard unparsed, since a reader that begins in the middle skips some.

        Raises:
            DataError: the shard is damaged or cannot be reached.
        """

    @abstractmethod
    def text(self, document: Any, shard: Shard) -> str:
        """The text of one document of a shard; raises DataError where the document has none."""

    def texts_of(self, shard: Shard) -> Iterator[str]:
        """Yield the text of each document of a shard."""
        return (self.text(document, shard) for document in self.documents(shard))

    def texts(self, split: str) -> Iterator[str]:
        return (text for shard in self.shards(split) for text in self.texts_of(shard))
