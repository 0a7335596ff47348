"""The speed of a run: measured on a CPU or on some GPU, as the scale trains, or without a measurement a stated share of the device's peak."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.plan.kinds import Cost, kind, setting
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

    The fastest run of a kind counts, as slower ones may have shared their cores with other work, and so does that of a method's setting. A planned run takes the
    rate of its kind, else the median over the settings of its method on its model, else on another model, else the median of other methods, else a share of the
    device's peak. Operations of finetuning runs are not counted: finished runs of a model, task and method give their time.
    """

    def __init__(self, scale: Scale, planned: Iterable[RunSpec], costs: dict[str, Cost], device: str) -> None:
        self._scale, self._device = scale, device
        self._fastest: dict[str | Trained, dict[str, float]] = defaultdict(dict)  # of each setting
        self._finetuning: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self._per_token: dict[str | Trained, list[float]] = defaultdict(list)  # operations for each token
        for spec in planned:
            for key in (kind(spec), (spec.model, spec.method)):
                self._per_token[key].append(costs[kind(spec)].operations * spec.steps / spec.tokens)

    def add(self, spec: RunSpec | FinetuningSpec, record: dict[str, Any]) -> None:
        """Take a finished or recorded run as a measurement, if it was trained on GPUs where the scale trains on GPUs, and on a CPU where it trains on one."""
        provenance, cost = record["provenance"], record["cost"]
        if provenance["device"].startswith("cpu") != (self._device == "cpu"):
            return
        if isinstance(spec, FinetuningSpec):
            self._finetuning[spec.model, spec.task, spec.method].append(cost["train_seconds"])
        elif speed := cost["tokens_per_second"]:
            for key in {kind(spec), (spec.model, spec.method)} & self._per_token.keys():
                rate = speed / provenance.get("devices", 1) * statistics.fmean(self._per_token[key])
                fastest = self._fastest[key]
                fastest[setting(spec)] = max(rate, fastest.get(setting(spec), 0.0))

    def of(self, spec: RunSpec) -> Rate:
        """The rate of a run."""
        rates = {key: statistics.median(fastest.values()) for key, fastest in self._fastest.items()}
        if rate := rates.get(kind(spec)):
            return Rate(rate, "measured: runs of its kind")
        for model in (spec.model, *reversed(self._scale.models)):
            if rate := rates.get((model, spec.method)):
                return Rate(rate, f"measured: runs of {spec.method} on {model}")
        if rates:
            return Rate(statistics.median(rate for key, rate in rates.items() if isinstance(key, tuple)), "measured: runs of other methods")
        peak = DEVICES[self._device].peak[spec.precision]
        return Rate(MFU * peak, f"at an MFU of {MFU:g} (assumed; {self._device}: {peak:.3g} FLOP/s at its peak in {spec.precision})")

    def finetuning_hours(self, spec: FinetuningSpec) -> float | None:
        """Hours of a finetuning run on one device: those of the fastest finished one of its model, task and method; None if there is none."""
        found = self._finetuning.get((spec.model, spec.task, spec.method))
        return min(found) / 3600 if found else None
