"""Rows of tokens for training: read from a prepared folder, in an order that every method shares.

Needs numpy and torch alone, so that a training process starts fast.
"""

from pathlib import Path

import numpy as np
import torch

from poet.data.errors import DataError
from poet.data.files import read_json

IGNORED_LABEL = -100


class TokenRows:
    """The rows of one split of a prepared folder, memory-mapped.

    sequence_length, vocab_size, pad_id: of the data set. sha256: of the rows file. len(): rows.
    Raises DataError where the folder is not prepared or its files do not fit its meta.json.
    """

    def __init__(self, folder: Path | str, split: str):
        folder = Path(folder)
        self.meta = read_json(folder / "meta.json")
        if self.meta is None:
            raise DataError(f"{folder} holds no prepared data (no meta.json): run python -m poet.data first")
        if split not in self.meta["splits"]:
            raise DataError(f"{folder} has no split {split!r}: it has {', '.join(self.meta['splits'])}")
        described = self.meta["splits"][split]
        path = folder / f"{split}.npy"
        try:
            self._rows = np.load(path, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {path} ({error}): prepare the data again") from error
        self.sequence_length: int = self.meta["sequence_length"]
        self.vocab_size: int = self.meta["tokenizer"]["vocab_size"]
        self.pad_id: int = self.meta["tokenizer"]["pad_id"]
        self.sha256: str = described["sha256"]
        if self._rows.shape != (described["rows"], self.sequence_length):
            raise DataError(
                f"{path} has shape {self._rows.shape}, not the one in meta.json: prepare the data again"
            )

    def __len__(self) -> int:
        return len(self._rows)

    def batch(self, indices: np.ndarray) -> torch.Tensor:
        """The rows `indices` (B,) as an int64 tensor (B, T)."""
        return torch.from_numpy(self._rows[np.asarray(indices)].astype(np.int64))

    def labels(self, batch: torch.Tensor) -> torch.Tensor:
        """A copy of `batch` (B, T) with -100, which the loss ignores, in place of padding."""
        return batch.masked_fill(batch == self.pad_id, IGNORED_LABEL)


def row_order(n_rows: int, seed: int, epoch: int) -> np.ndarray:
    """The order (n_rows,) in which epoch `epoch` reads the rows: a permutation fixed by `seed` and
    `epoch`."""
    # Half the memory of int64 matters at 150 million rows and eight processes a machine.
    indices = np.arange(n_rows, dtype=np.uint32 if n_rows <= 1 << 32 else np.int64)
    return np.random.Generator(np.random.PCG64([seed, epoch])).permutation(indices)


class BatchOrder:
    """Which rows each step reads: the permutations of epoch 0, 1, ... one after the other, cut into batches.

    A batch may span two epochs, and a run may read more rows than there are. The answer depends on the
    arguments alone, so that a resumed run needs no state. Raises ValueError for an empty data set, batch or a
    negative step.
    """

    def __init__(self, n_rows: int, batch_rows: int, seed: int):
        if n_rows < 1 or batch_rows < 1:
            raise ValueError(f"needs at least one row and one row a batch, not {n_rows} and {batch_rows}")
        self.n_rows, self.batch_rows, self.seed = n_rows, batch_rows, seed
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def indices(self, step: int) -> np.ndarray:
        """The rows of step `step` (from 0): int64 (batch_rows,)."""
        if step < 0:
            raise ValueError(f"step must not be negative, is {step}")
        place, end = step * self.batch_rows, (step + 1) * self.batch_rows
        parts = []
        while place < end:
            epoch, offset = divmod(place, self.n_rows)
            parts.append(self._permutation(epoch)[offset : offset + end - place])
            place += len(parts[-1])
        return np.concatenate(parts).astype(np.int64)

    def _permutation(self, epoch: int) -> np.ndarray:
        # The last one is kept because consecutive steps ask for the same.
        if epoch != self._epoch:
            self._epoch, self._order = epoch, row_order(self.n_rows, self.seed, epoch)
        return self._order
