"""The order in which rows are read: a function of the seed and the step alone."""

from __future__ import annotations

import functools

import numpy as np


def epoch_order(count: int, seed: int, epoch: int) -> np.ndarray:
    """The order (count,) in which an epoch reads ``count`` rows or shards: a permutation fixed by ``seed`` and ``epoch``."""
    # uint32 takes half the memory of int64, which matters with many rows in many processes.
    indices = np.arange(count, dtype=np.uint32 if count <= 1 << 32 else np.int64)
    return np.random.Generator(np.random.PCG64([seed, epoch])).permutation(indices)


class BatchOrder:
    """Which rows each step reads: the permutations of epoch 0, 1, ... one after the other, cut into batches.

    A batch may span two epochs, and a run may read more rows than there are. The answer depends on the
    arguments alone, so that a resumed run needs no state.

    Raises:
        ValueError: the data set or the batch is empty.
    """

    def __init__(self, n_rows: int, batch_rows: int, seed: int):
        if n_rows < 1 or batch_rows < 1:
            raise ValueError(f"needs at least one row and one row a batch, not {n_rows} and {batch_rows}")
        self.n_rows, self.batch_rows, self.seed = n_rows, batch_rows, seed
        self._order = functools.lru_cache(maxsize=1)(epoch_order)  # consecutive steps ask for the same

    def indices(self, step: int) -> np.ndarray:
        """The rows of step ``step`` (from 0): int64 (batch_rows,)."""
        place, end = step * self.batch_rows, (step + 1) * self.batch_rows
        parts = []
        while place < end:
            epoch, offset = divmod(place, self.n_rows)
            parts.append(self._order(self.n_rows, self.seed, epoch)[offset : offset + end - place])
            place += len(parts[-1])
        return np.concatenate(parts).astype(np.int64)
