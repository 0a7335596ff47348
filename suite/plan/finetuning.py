"""Time of a plan's finetuning runs, from finished runs of their kind alone: their operations are not counted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from poet.finetuning.spec import FinetuningSpec


@dataclass(frozen=True, slots=True)
class Finetunings:
    """Number and time of a plan's finetuning runs.

    Attributes:
        number: number of runs.
        left: number of runs that are not done.
        unmeasured: number of runs that are not done and have no finished run of their kind.
        hours: hours on one device for the other runs that are not done.
    """

    number: int
    left: int
    unmeasured: int
    hours: float


def kind(spec: FinetuningSpec) -> tuple[str, str, str]:
    """A key that is equal for runs that take the same time at a scale: without seed, learning rate and pretrained run."""
    return spec.model, spec.task, spec.method


def estimate(done: dict[FinetuningSpec, bool], finished: Iterable[tuple[FinetuningSpec, dict[str, Any]]], device: str) -> Finetunings:
    """The number and time of a scale's finetuning runs.

    Args:
        done: the runs, with whether each has its record.
        finished: runs of the scale with their records. The fastest of a kind counts: slower ones may have shared their cores with other work.
        device: a key of :data:`suite.plan.rate.DEVICES`; records of another device are ignored.
    """
    seconds: dict[tuple[str, str, str], float] = {}
    for spec, record in finished:
        if device in record["provenance"]["device"].lower():
            seconds[kind(spec)] = min(record["cost"]["train_seconds"], seconds.get(kind(spec), float("inf")))
    left = [spec for spec, is_done in done.items() if not is_done]
    known = [seconds[kind(spec)] for spec in left if kind(spec) in seconds]
    return Finetunings(len(done), len(left), len(left) - len(known), sum(known) / 3600)
