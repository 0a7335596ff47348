"""The speed of a run: measured on the same device, or without a measurement a stated share of the device's peak."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.plan.kinds import Cost, devices, kind
from suite.scale import Scale

#: A model's and a method's name.
Trained = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Device:
    """A device that trains.

    Attributes:
        peak: operations per second of dense matrix products, by the precision of a run.
        memory: bytes that a run can count on; see ``suite.plan.memory``.
    """

    peak: dict[str, float]
    memory: float


#: Model FLOPs utilization: the share of a device's peak that is assumed where nothing was measured.
MFU = 0.3
#: What GPUs and CPUs are taken to be: an H100 SXM by NVIDIA's data sheet, without sparsity, in fp32 without TF32, as is torch's
#: default; and one core with two 8-wide fused multiply-adds per cycle (AVX2) at 3 GHz.
DEVICES = {
    "h100": Device({"bf16": 989e12, "fp32": 67e12}, 80e9),
    "cpu": Device({"bf16": 96e9, "fp32": 96e9}, 0.0),
}


@dataclass(frozen=True, slots=True)
class Rate:
    """The speed of a device in operations per second, and where the number comes from, in words."""

    per_second: float
    source: str


class Rates:
    """What finished runs measured, for planned ones.

    The rate of a pretraining run comes from the best source: runs of its kind, else recorded ones, else recorded runs of its method on its
    model, else on another model, else recorded runs of any method, else the device's peak. Operations of finetuning runs are not counted: finished runs
    of a model, task and method give their time.
    """

    def __init__(self, scale: Scale, planned: Iterable[RunSpec], costs: dict[str, Cost], device: str) -> None:
        self._scale, self._device = scale, device
        self._of_kind: dict[str, list[float]] = defaultdict(list)
        self._recorded: dict[str | Trained, list[float]] = defaultdict(list)
        self._finetuning: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self._per_token: dict[str | Trained, list[float]] = defaultdict(list)  # operations for each token
        for spec in planned:
            for key in (kind(spec), (spec.model, spec.method)):
                self._per_token[key].append(costs[kind(spec)].operations * spec.steps / spec.tokens)

    def add(self, spec: RunSpec | FinetuningSpec, record: dict[str, Any], *, recorded: bool = False) -> None:
        """Take a finished run as a measurement.

        Args:
            spec: the run.
            record: its record.
            recorded: whether it is one of the scale's recorded runs. They stand for their method, too, since a recorded run may be of a
                kind that is not planned. Others stand for their kind alone, and only if as many devices trained them as are planned.
        """
        provenance, cost = record["provenance"], record["cost"]
        if self._device not in provenance["device"].lower():
            return
        if isinstance(spec, FinetuningSpec):
            self._finetuning[spec.model, spec.task, spec.method].append(cost["train_seconds"])
            return
        speed, number = cost["tokens_per_second"], provenance.get("devices", 1)
        if not speed or not (recorded or number == devices(self._scale.resources(spec.model))):
            return
        rates, keys = (self._recorded, (kind(spec), (spec.model, spec.method))) if recorded else (self._of_kind, (kind(spec),))
        for key in keys:
            if key in self._per_token:
                rates[key].append(speed / number * statistics.fmean(self._per_token[key]))

    def of(self, spec: RunSpec) -> Rate:
        """The rate of a run."""
        if found := self._of_kind.get(kind(spec)):
            return Rate(statistics.fmean(found), "measured: records of its kind")
        fastest = {key: max(found) for key, found in self._recorded.items()}  # slower ones may have shared their cores with other work
        if rate := fastest.get(kind(spec)):
            return Rate(rate, "measured: recorded runs of its kind")
        for model in (spec.model, *reversed(self._scale.models)):
            if rate := fastest.get((model, spec.method)):
                return Rate(rate, f"measured: recorded runs of {spec.method} on {model}")
        if fastest:
            return Rate(statistics.median(rate for key, rate in fastest.items() if isinstance(key, tuple)), "measured: recorded runs of other methods")
        return Rate(MFU * DEVICES[self._device].peak[spec.precision], f"at an MFU of {MFU:g} on {self._device} (assumed)")

    def finetuning_hours(self, spec: FinetuningSpec) -> float | None:
        """Hours of a finetuning run on one device: those of the fastest finished one of its model, task and method; None if there is none."""
        found = self._finetuning.get((spec.model, spec.task, spec.method))
        return min(found) / 3600 if found else None
