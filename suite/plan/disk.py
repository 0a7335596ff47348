"""Disk space of runs, while they are trained and when they are done."""

from collections.abc import Iterable
from dataclasses import dataclass

from poet.data.estimate import Estimate, estimate
from poet.training.spec import RunSpec
from suite.plan.memory import Footprint
from suite.scale import Scale

#: Checkpoints of a run at a time: the newest, the one before it, and the next while it is written.
CHECKPOINTS = 3
#: Size of ``record.json`` with a line for each matrix and ``history.csv`` with one for each of 500 measured steps. Probes are not in it.
RECORD_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Disk:
    """Disk space of the runs that are not done, in bytes.

    Attributes:
        data: size and cost of the scale's data; see ``poet.data.estimate``.
        checkpoints: those of all runs together, as if they were trained at once.
        largest: checkpoints of the run with the largest ones.
        kept: records, and final weights where the spec keeps them.
    """

    data: Estimate
    checkpoints: int
    largest: int
    kept: int


def disk(scale: Scale, left: Iterable[tuple[RunSpec, Footprint, int]]) -> Disk:
    """The disk space that the runs that are not done need.

    Args:
        scale: the scale of the runs.
        left: each run with its memory on one device, and the number of devices that divide its optimizers' state.

    Raises:
        DataError: the description of the data is wrong, or its folder of shards is empty.
    """
    left = list(left)
    checkpoints = [CHECKPOINTS * (memory.weights + divided * memory.state) for _, memory, divided in left]  # the state of all devices
    return Disk(
        data=estimate(scale.data, max((spec.steps * spec.batch_rows for spec, _, _ in left), default=None)),
        checkpoints=sum(checkpoints),
        largest=max(checkpoints, default=0),
        kept=sum(RECORD_BYTES + (memory.weights if spec.keep_weights else 0) for spec, memory, _ in left),
    )
