"""Rows of tokens for training: read from a prepared folder, in an order that every method and every reader shares.

It imports only numpy and torch, so that a training process starts fast; only a stream also imports its tokenizer.
"""

import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from poet.data.errors import DataError
from poet.data.files import read_json, whole
from poet.data.order import BatchOrder, epoch_order

IGNORED_LABEL = -100


class _Prepared:
    """A prepared folder: ``meta`` (of ``meta.json``), ``sequence_length``, ``vocab_size``, ``pad_id``."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        self.meta = read_meta(self.folder)
        self.sequence_length: int = self.meta["sequence_length"]
        self.vocab_size: int = self.meta["tokenizer"]["vocab_size"]
        self.pad_id: int = self.meta["tokenizer"]["pad_id"]


class TrainingBatches(_Prepared):
    """The batches of a run, step by step: a pure function of the data, ``batch_rows``, ``seed`` and the step.

    Every reader with the same arguments gets the same rows in the same order, whichever step it begins at. One file of
    rows is read in permutations of all its rows (``BatchOrder``). Rows in shards, streamed or not, are read shard after shard, each
    from its first row to its last, and each epoch has its own permutation of the shards. This is enough, because C4's makers
    shuffled its documents; a permutation of 365 million rows would take gigabytes in every process and a seek for each row.
    A batch may span shards and epochs.

    Attributes:
        sha256: of the rows, or of what they are made from if they are streamed.

    Raises:
        DataError: the folder is not prepared, or damaged.
        ValueError: the batch is empty.
    """

    def __init__(self, folder: Path | str, batch_rows: int, seed: int):
        super().__init__(folder)
        described = self.meta["splits"]["train"]
        self.sha256: str = described["sha256"]
        if batch_rows < 1:
            raise ValueError(f"needs at least one row a batch, not {batch_rows}")
        if "stream" in described:
            from poet.data.stream import StreamedBatches  # here, because it brings the tokenizer

            self._read = StreamedBatches(self.folder, self.meta, batch_rows, seed).read
        elif "files" in described:
            self._read = _ShardBatches(self.folder, self.meta, batch_rows, seed).read
        else:
            rows = TokenRows(self.folder, "train")
            order = BatchOrder(len(rows), batch_rows, seed)
            self._read = lambda step: rows.read(order.indices(step))

    def batch(self, step: int) -> torch.Tensor:
        """The rows of step ``step`` (from 0): int64 (batch_rows, T).

        Raises:
            ValueError: the step is negative.
        """
        if step < 0:
            raise ValueError(f"step must not be negative, is {step}")
        return torch.from_numpy(self._read(step).astype(np.int64))


class TokenRows(_Prepared):
    """The rows of one split of a prepared folder, memory-mapped; ``len()`` is their number.

    Raises:
        DataError: the folder is not prepared, or its files do not fit its meta.json.
    """

    def __init__(self, folder: Path | str, split: str):
        super().__init__(folder)
        if split not in self.meta["splits"]:
            raise DataError(f"{folder} has no split {split!r}: it has {', '.join(self.meta['splits'])}")
        self._rows = _load(self.folder / f"{split}.npy", (self.meta["splits"][split].get("rows"), self.sequence_length))

    def __len__(self) -> int:
        return len(self._rows)

    def batch(self, indices: np.ndarray) -> torch.Tensor:
        """The rows ``indices`` (B,) as an int64 tensor (B, T)."""
        return torch.from_numpy(self.read(indices).astype(np.int64))

    def read(self, indices: np.ndarray) -> np.ndarray:
        """The rows ``indices`` (B,) as they are stored (B, T)."""
        return self._rows[np.asarray(indices)]

    def labels(self, batch: torch.Tensor) -> torch.Tensor:
        """A copy of ``batch`` (B, T) with -100, which the loss ignores, in place of padding."""
        return batch.masked_fill(batch == self.pad_id, IGNORED_LABEL)


class _ShardBatches:
    """Batches from rows in shards, memory-mapped."""

    def __init__(self, folder: Path, meta: dict, batch_rows: int, seed: int):
        self._folder, self._length = folder, meta["sequence_length"]
        self._shards: list[dict] = meta["splits"]["train"]["files"]
        self._sizes = np.array([shard["rows"] for shard in self._shards])
        self._batch_rows, self._seed = batch_rows, seed
        for shard in self._shards:  # checked now, not after days of training
            if not whole(shard, folder):
                raise DataError(f"{folder / shard['file']} is not whole: prepare the data again, which makes this shard alone")
        self._epoch = functools.lru_cache(maxsize=2)(self._epoch)
        self._rows = functools.lru_cache(maxsize=2)(self._rows)

    def read(self, step: int) -> np.ndarray:
        """The rows of a step (batch_rows, T)."""
        return np.concatenate([self._rows(shard)[begin:end] for shard, begin, end in self._spans(step)])

    def _spans(self, step: int) -> Iterator[tuple[int, int, int]]:
        """Yields (shard, first row, row after the last) of a step."""
        place, left = step * self._batch_rows, self._batch_rows
        while left:
            epoch, offset = divmod(place, int(self._sizes.sum()))
            order, ends = self._epoch(epoch)
            position = int(np.searchsorted(ends, offset, side="right"))
            shard = int(order[position])
            begin = offset - int(ends[position] - self._sizes[shard])
            end = min(begin + left, int(self._sizes[shard]))
            yield shard, begin, end
            place += end - begin
            left -= end - begin

    def _epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The shards of an epoch in their order, and the number of the epoch's rows up to the end of each."""
        order = epoch_order(len(self._sizes), self._seed, epoch)
        return order, np.cumsum(self._sizes[order])

    def _rows(self, shard: int) -> np.ndarray:
        described = self._shards[shard]
        return _load(self._folder / described["file"], (described["rows"], self._length))


def read_meta(folder: Path) -> dict:
    """``meta.json`` of a prepared folder.

    Raises:
        DataError: there is none.
    """
    meta = read_json(folder / "meta.json")
    if meta is None:
        raise DataError(f"{folder} holds no prepared data (no meta.json): run python -m poet.data first")
    return meta


def _load(path: Path, shape: tuple[int | None, int]) -> np.ndarray:
    try:
        rows = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path} ({error}): prepare the data again") from error
    if rows.shape != shape:
        raise DataError(f"{path} has shape {rows.shape}, not the one in meta.json: prepare the data again")
    return rows
