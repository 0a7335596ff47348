"""What a corpus has to say of itself.

A corpus is one file in this folder that defines ``CORPUS``, a subclass of :class:`Corpus` or :class:`ShardedCorpus`. The
registry finds it; descriptions of data sets, preparation, estimates and training then know it by its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Size:
    """What a corpus comes to, from which costs are estimated.

    Attributes:
        documents: by split.
        text_bytes, tokens, source_bytes: of a document, on average; the source is what is read, compressed.
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
        path: that folder; None where the corpus knows itself where its text is.
        cache: folder for what is fetched, shared by all data sets. Estimates and training do without.
        processes: how many may share the work of cleaning; the text does not depend on it.
    """

    name: ClassVar[str]
    versions: ClassVar[dict[str, int]]
    size: ClassVar[Size]
    reads_folder: ClassVar[bool] = False

    def __init__(self, path: str | None = None, cache: Path | None = None, processes: int = 2) -> None:
        self.path, self.cache, self.processes = path, cache, processes

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What says which text this is, found without reading it. Prepared rows of another identity are made again."""

    def details(self) -> dict[str, Any]:
        """What else ``meta.json`` says of the text."""
        return {}

    @abstractmethod
    def texts(self, split: str) -> Iterator[str]:
        """Yield the documents of a split, the same ones in the same order each time.

        Raises:
            DataError: the text cannot be had, or is damaged.
        """


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a corpus.

    Attributes:
        name: as the corpus calls it.
        stem: what the files of its rows are called.
        url: where it is read, a path or an address.
        version: what tells that it is still the same file.
        bytes: its compressed size, where it is local.
        siblings: how many shards its split has when it is whole, where the name says it.
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
        """Yield the documents of a shard unparsed, since a reader that begins in the middle passes over some.

        Raises:
            DataError: the shard is damaged or out of reach.
        """

    @abstractmethod
    def text(self, document: Any, shard: Shard) -> str:
        """The text of one of a shard's documents; raises DataError where it holds none."""

    def texts_of(self, shard: Shard) -> Iterator[str]:
        """Yield the text of each document of a shard."""
        return (self.text(document, shard) for document in self.documents(shard))

    def texts(self, split: str) -> Iterator[str]:
        return (text for shard in self.shards(split) for text in self.texts_of(shard))
