"""In which order rows are read: a function of the seed and the step alone."""

from __future__ import annotations

import numpy as np


def epoch_order(count: int, seed: int, epoch: int) -> np.ndarray:
    """The order (count,) in which epoch `epoch` reads so many rows, or shards: a permutation fixed by `seed` and
    `epoch`."""
    # Half the memory of int64 matters where many rows meet many processes.
    indices = np.arange(count, dtype=np.uint32 if count <= 1 << 32 else np.int64)
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
            self._epoch, self._order = epoch, epoch_order(self.n_rows, self.seed, epoch)
        return self._order
