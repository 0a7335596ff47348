"""Training rows made from a corpus in shards while training reads them, in the order that prepared rows would have.

Only the number of rows of each shard is kept, in ``<folder>/train/<shard>.json``. With it, a reader that begins in the middle
skips whole shards; without it, the reader counts documents.

Every process of a run makes all rows of the run. A core makes some nine hundred rows of 256 tokens a second
(``poet.data.estimate``), and all cores of a process take part. Training that reads faster waits for its data.
"""

import itertools
import queue
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from poet.data.corpora import CORPORA, Shard
from poet.data.errors import DataError
from poet.data.files import read_json, write_json
from poet.data.order import epoch_order
from poet.data.packing import pad
from poet.data.tokenizer import load_prepared
from poet.data.writing import encoded
from poet.system.errors import UserError
from poet.system.files import DiskError
from poet.system.progress import say

#: Most batches that are made ahead of training.
AHEAD = 8
_SECONDS_BETWEEN_LOOKS = 0.2


class StreamedBatches:
    """Batches of rows that a thread makes ahead of training.

    Consecutive steps come from one pass over the documents; any other step begins a new pass at its own place.

    Raises:
        DataError: the shards are not those that the folder was prepared for.
    """

    def __init__(self, folder: Path, meta: dict, batch_rows: int, seed: int):
        self._rows, self._batch_rows = _Rows(folder, meta, seed), batch_rows
        self._next: int | None = None
        self._stop = threading.Event()

    def read(self, step: int) -> np.ndarray:
        """The rows of a step (batch_rows, T).

        Raises:
            DataError: the thread that makes them met an error.
        """
        if step != self._next:
            self._begin(step)
        self._next = None  # after an error, the next call begins a new pass
        batch = self._batches.get()
        if isinstance(batch, UserError):
            raise batch
        if isinstance(batch, Exception):
            raise DataError(f"the stream of training rows broke ({batch!r}): run again to go on from the last checkpoint") from batch
        self._next = step + 1
        return batch

    def _begin(self, step: int) -> None:
        self._stop.set()
        self._stop, self._batches = threading.Event(), queue.Queue(AHEAD)
        weakref.finalize(self, self._stop.set)
        rows = self._rows.beginning_at(step * self._batch_rows)
        work = (rows, self._batch_rows, self._batches, self._stop)
        threading.Thread(target=_make, args=work, name="stream of rows", daemon=True).start()


def _make(rows: Iterator[np.ndarray], batch_rows: int, batches: queue.Queue, stop: threading.Event) -> None:
    """Fills the queue with batches until told to stop; an error goes into the queue too. Holds no reference to the reader, so that it can be freed."""
    try:
        while not stop.is_set():
            _put(np.concatenate(list(itertools.islice(rows, batch_rows))), batches, stop)
    except Exception as error:
        _put(error, batches, stop)


def _put(batch: np.ndarray | Exception, batches: queue.Queue, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            return batches.put(batch, timeout=_SECONDS_BETWEEN_LOOKS)
        except queue.Full:
            continue


class _Rows:
    """The endless sequence of rows, epoch after epoch."""

    def __init__(self, folder: Path, meta: dict, seed: int):
        self._notes, self._data, self._seed = folder / "train", meta["data"], seed
        self._tokenizer = load_prepared(folder, meta)
        self._corpus = CORPORA[self._data["corpus"]](self._data["path"])
        self._shards = self._corpus.shards("train")
        self._can_note = True
        if not self._corpus.identity().items() <= meta["corpus"].items():
            raise DataError(
                f"the shards of {self._corpus.name} are not those that {folder} was prepared for: "
                "put them back, or delete its meta.json and prepare the data again"
            )

    def beginning_at(self, place: int) -> Iterator[np.ndarray]:
        """Yields the rows (1, T) from the one at ``place`` on."""
        for epoch in itertools.count():
            n_documents = 0
            for number in epoch_order(len(self._shards), self._seed, epoch):
                shard = self._shards[number]
                size = self._size(shard)
                if size is None or place < size:
                    size = yield from self._rest(shard, place)
                place = max(0, place - size)
                n_documents += size
            if not n_documents:
                raise DataError(f"the shards of {self._corpus.name} hold no documents: fetch them again")

    def _rest(self, shard: Shard, place: int) -> Iterator[np.ndarray]:
        """Yields the rows of a shard from the one at ``place`` on; returns the number of rows of the whole shard."""
        unparsed = self._corpus.documents(shard)
        size = sum(1 for _ in itertools.islice(unparsed, place))
        texts = (self._corpus.text(document, shard) for document in unparsed)
        documents = encoded(texts, self._tokenizer, self._data)
        for row, _, _ in pad(documents, self._tokenizer, self._data["sequence_length"]):
            size += 1
            yield row
        self._note(shard, size)
        return size

    def _size(self, shard: Shard) -> int | None:
        """The number of documents of a shard; None where they have not been counted."""
        note = read_json(self._notes / f"{shard.stem}.json")
        return note.get("documents") if note and note.get("version") == shard.version else None

    def _note(self, shard: Shard, size: int) -> None:
        if self._can_note and self._size(shard) is None:
            try:
                write_json(self._notes / f"{shard.stem}.json", {"version": shard.version, "documents": size})
            except DiskError as error:  # without the note, a resumed run only needs more time
                self._can_note = False
                say(f"how many documents a shard holds is not kept: {error}")
