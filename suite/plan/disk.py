"""What runs leave on the disk while they are trained and when they are done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poet.data.estimate import Estimate, estimate
from poet.training.spec import RunSpec
from suite.plan.memory import Footprint
from suite.scale import Scale

#: Checkpoints of a run at a time: the newest, the one before it, and the next while it is written.
CHECKPOINTS = 3
#: Of ``record.json`` and ``history.csv`` together: a line for each matrix and one for each of 500 measured steps. Probes come on top.
RECORD_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes.

    Attributes:
        data: what the scale's data costs; see ``poet.data.estimate``.
        checkpoints: of all runs that are left, as if they were trained at once.
        largest: the most that one of them holds.
        kept: final weights where the spec keeps them, and records.
    """

    data: Estimate
    checkpoints: int
    largest: int
    kept: int


def disk(scale: Scale, left: Iterable[tuple[RunSpec, Footprint, int]]) -> Disk:
    """What is needed for runs that are not done.

    Args:
        scale: theirs.
        left: each with the memory of one of its devices, and among how many its optimizers' state is divided.

    Raises:
        DataError: the description of the data is wrong, or its folder of shards is empty.
    """
    left = list(left)
    checkpoints = [CHECKPOINTS * (memory.weights + divided * memory.state) for _, memory, divided in left]  # the whole state, whoever holds it
    return Disk(
        data=estimate(scale.data, max((spec.steps * spec.batch_rows for spec, _, _ in left), default=None)),
        checkpoints=sum(checkpoints),
        largest=max(checkpoints, default=0),
        kept=sum(RECORD_BYTES + (memory.weights if spec.keep_weights else 0) for spec, memory, _ in left),
    )
