"""The speed of a run: measured on the same device, or without a measurement a stated share of the device's peak."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from poet.training.spec import RunSpec
from suite.plan.kinds import Cost, devices, kind
from suite.recorded.run import RecordedRun
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


#: Numbers of NVIDIA's data sheets for A100 80GB, H100 SXM and H200 SXM, without sparsity; fp32 without TF32, as is torch's
#: default. A CPU device is one core with two 8-wide fused multiply-adds per cycle (AVX2) at 3 GHz.
DEVICES = {
    "a100": Device({"bf16": 312e12, "fp32": 19.5e12}, 80e9),
    "h100": Device({"bf16": 989e12, "fp32": 67e12}, 80e9),
    "h200": Device({"bf16": 989e12, "fp32": 67e12}, 141e9),
    "cpu": Device({"bf16": 96e9, "fp32": 96e9}, 0.0),
}


@dataclass(frozen=True, slots=True)
class Rate:
    """The speed of a device.

    Attributes:
        per_second: operations of one device in a second.
        source: where the number comes from, in words.
    """

    per_second: float
    source: str


class Rates:
    """The rate of each run, from the best source: runs of its kind, else recorded runs of the scale, else the device's peak.

    Args:
        scale: the scale of the runs.
        costs: the cost of every kind of run; see :func:`suite.plan.kinds.costs`.
        device: a key of :data:`DEVICES`.
        mfu: the assumed share of the device's peak where nothing was measured.
    """

    def __init__(self, scale: Scale, costs: dict[str, Cost], device: str, mfu: float) -> None:
        self._scale, self._costs, self._device, self._mfu = scale, costs, device, mfu
        self._of_kind: dict[str, list[float]] = defaultdict(list)
        self._archived: dict[Trained, float] = {}

    def add(self, spec: RunSpec, record: dict[str, Any]) -> None:
        """Take the record of a run as a measurement, if it was trained on the same device and as many of them as planned."""
        provenance, tokens = record["provenance"], record["cost"]["tokens_per_second"]
        number = devices(self._scale.resources(spec.model))
        if self._is_of_device(provenance["device"]) and provenance.get("devices", 1) == number and tokens:
            per_token = self._costs[kind(spec)].operations * spec.steps / spec.tokens
            self._of_kind[kind(spec)].append(tokens * per_token / number)

    def add_archived(self, runs: Iterable[RecordedRun], planned: Iterable[RunSpec]) -> None:
        """Take recorded runs of the scale as measurements of their method: on their own model, else on another one, else of any method.

        Args:
            runs: runs of the archive. The fastest of a method on a model counts: slower ones may have shared their cores with other work.
            planned: runs whose costs are known; they give the operations for each token of a method on a model.
        """
        per_token: dict[Trained, list[float]] = defaultdict(list)
        for spec in planned:
            per_token[spec.model, spec.method].append(self._costs[kind(spec)].operations * spec.steps / spec.tokens)
        speeds: dict[Trained, list[float]] = defaultdict(list)
        for run in runs:
            spec, provenance = run.spec, run.record["provenance"]
            if isinstance(spec, RunSpec) and (spec.model, spec.method) in per_token and self._is_of_device(provenance["device"]):
                if speed := run.record["cost"]["tokens_per_second"]:
                    speeds[spec.model, spec.method].append(speed / provenance.get("devices", 1))
        for trained, found in speeds.items():
            self._archived[trained] = max(found) * statistics.fmean(per_token[trained])

    def of(self, spec: RunSpec) -> Rate:
        """The rate of a run."""
        if found := self._of_kind.get(kind(spec)):
            return Rate(statistics.fmean(found), "measured: records of its kind")
        for model in (spec.model, *reversed(self._scale.models)):
            if rate := self._archived.get((model, spec.method)):
                return Rate(rate, f"measured: recorded runs of {spec.method} on {model}")
        if self._archived:
            return Rate(statistics.median(self._archived.values()), "measured: recorded runs of other methods")
        return Rate(self._mfu * DEVICES[self._device].peak[spec.precision], f"at an MFU of {self._mfu:g} on {self._device} (assumed: --mfu, --device)")

    def _is_of_device(self, name: str) -> bool:
        return self._device in name.lower()
