"""What the finetuning runs of a plan take, from finished runs of their kind alone: the plan counts no operations of theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from poet.finetuning.spec import FinetuningSpec


@dataclass(frozen=True, slots=True)
class Finetunings:
    """Attributes:
    number: of runs.
    left: of them, those that are not done.
    unmeasured: of those left, those of a kind that no finished run is of.
    hours: of one device, for the others that are left.
    """

    number: int
    left: int
    unmeasured: int
    hours: float


def kind(spec: FinetuningSpec) -> tuple[str, str, str]:
    """Equal for runs that take the same time at a scale: seeds, rates and what pretrained the weights are left out."""
    return spec.model, spec.task, spec.method


def estimate(done: dict[FinetuningSpec, bool], finished: Iterable[tuple[FinetuningSpec, dict[str, Any]]], device: str) -> Finetunings:
    """What a scale's finetuning runs take.

    Args:
        done: the runs, with whether each has its record.
        finished: runs of the scale with their records; of those of a kind the fastest counts, as others may have shared their cores.
        device: a key of :data:`suite.plan.rate.DEVICES`; records of another one are no measurement.
    """
    seconds: dict[tuple[str, str, str], float] = {}
    for spec, record in finished:
        if device in record["provenance"]["device"].lower():
            seconds[kind(spec)] = min(record["cost"]["train_seconds"], seconds.get(kind(spec), float("inf")))
    left = [spec for spec, is_done in done.items() if not is_done]
    known = [seconds[kind(spec)] for spec in left if kind(spec) in seconds]
    return Finetunings(len(done), len(left), len(left) - len(known), sum(known) / 3600)
