"""How fast a run goes: measured where there is a measurement of the same device, else a stated share of the device's peak."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poet.training.spec import RunSpec
from suite.plan.kinds import Cost, devices, kind
from suite.scale import ROOT, Scale


@dataclass(frozen=True, slots=True)
class Device:
    """A device that trains.

    Attributes:
        peak: operations per second of dense matrix products, by the precision of a run.
        memory: bytes that a run can count on; see ``suite.plan.memory``.
    """

    peak: dict[str, float]
    memory: float


#: NVIDIA's data sheets of A100 80GB, H100 SXM and H200 SXM, without sparsity; fp32 is what torch computes in unless it is
#: told to take TF32. A CPU device is one core with two 8-wide fused multiply-adds per cycle (AVX2) at 3 GHz.
DEVICES = {
    "a100": Device({"bf16": 312e12, "fp32": 19.5e12}, 80e9),
    "h100": Device({"bf16": 989e12, "fp32": 67e12}, 80e9),
    "h200": Device({"bf16": 989e12, "fp32": 67e12}, 141e9),
    "cpu": Device({"bf16": 96e9, "fp32": 96e9}, 0.0),
}


@dataclass(frozen=True, slots=True)
class Rate:
    """Attributes:
    per_second: operations of one device.
    source: where it comes from, in words.
    """

    per_second: float
    source: str


class Rates:
    """The rate of each run, from the best source there is: runs of its kind, the recorded cost of its artifacts, the peak.

    Args:
        scale: of the runs.
        costs: of every kind among them; see :func:`suite.plan.kinds.costs`.
        device: a key of :data:`DEVICES`.
        mfu: share of its peak that is taken where nothing was measured.
    """

    def __init__(self, scale: Scale, costs: dict[str, Cost], device: str, mfu: float) -> None:
        self._scale, self._costs, self._device, self._mfu = scale, costs, device, mfu
        self._of_kind: dict[str, list[float]] = defaultdict(list)
        self._recorded: Rate | None = None

    def add(self, spec: RunSpec, record: dict[str, Any]) -> None:
        """Take the record of a run as a measurement, if it is of the device and of as many of them."""
        provenance, tokens = record["provenance"], record["cost"]["tokens_per_second"]
        number = devices(self._scale.resources(spec.model))
        if self._is_of_device(provenance["device"]) and provenance.get("devices", 1) == number and tokens:
            per_token = self._costs[kind(spec)].operations * spec.steps / spec.tokens
            self._of_kind[kind(spec)].append(tokens * per_token / number)

    def add_recorded(self, artifact: str, runs: list[RunSpec]) -> None:
        """Take a line of ``analyses/recorded/<scale>/cost.csv`` as a measurement of all runs, if it is of the device.

        Args:
            artifact: the line's, or "all".
            runs: what it stands for, with one seed each.
        """
        path = ROOT / "analyses" / "recorded" / self._scale.name / "cost.csv"
        line = _line(path, artifact)
        if line is None or not self._is_of_device(line["device"]):
            return
        seeds = int(line["runs"]) / len(runs)
        operations = sum(self._costs[kind(spec)].operations * spec.steps for spec in runs) * seeds
        seconds = 60 * float(line["core_minutes"])
        self._recorded = Rate(operations / seconds, f"measured: {path.relative_to(ROOT)}, {artifact}, {line['device']}")

    def of(self, spec: RunSpec) -> Rate:
        """The rate of a run."""
        if found := self._of_kind.get(kind(spec)):
            return Rate(statistics.fmean(found), "measured: records of its kind")
        if self._recorded is not None:
            return self._recorded
        return Rate(self._mfu * DEVICES[self._device].peak[spec.precision], f"at an MFU of {self._mfu:g} on {self._device} (assumed: --mfu, --device)")

    def _is_of_device(self, name: str) -> bool:
        return self._device in name.lower()


def _line(path: Path, artifact: str) -> dict[str, str] | None:
    if not path.exists():
        return None
    with open(path, newline="") as file:
        return next((line for line in csv.DictReader(file) if line["artifact"] == artifact), None)
