"""A plan: the cost of every run of a scale or an artifact, and the order of the artifacts."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poet.data.estimate import Estimate, estimate
from poet.system.validation import ConfigError
from poet.training.spec import RunSpec
from suite.collection import Suite
from suite.plan.kinds import Cost, costs, devices, divided, kind
from suite.plan.order import Step, evidence, in_order, needed
from suite.plan.rate import DEVICES, Rate, Rates
from suite.recorded.archive import archive_path, read
from suite.status import progress

#: Checkpoints of a run at a time: the newest, the one before it, and the next while it is written.
CHECKPOINTS = 3
#: Size of ``record.json`` with a line for each matrix and ``history.csv`` with one for each of 500 measured steps. Probes are not in it.
RECORD_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A pretraining run and its cost."""

    spec: RunSpec
    done: bool
    cost: Cost
    rate: Rate
    resources: dict[str, Any]

    @property
    def devices(self) -> int:
        """Number of GPUs that train it, or of processes on CPUs."""
        return devices(self.resources)

    @property
    def operations(self) -> int:
        return self.cost.operations * self.spec.steps

    @property
    def hours(self) -> float:
        """Wall time from the first step to the last."""
        return self.operations / (self.rate.per_second * self.devices) / 3600

    @property
    def device_hours(self) -> float:
        return self.hours * self.devices

    @property
    def jobs(self) -> int:
        """How many jobs the run takes under its time limit: each job continues where the last one was stopped."""
        return math.ceil(60 * self.hours / self.resources["runtime"])

    @property
    def checkpoint_bytes(self) -> int:
        """Disk space of its checkpoints, each with the optimizer state of all devices."""
        return CHECKPOINTS * (self.cost.memory.weights + divided(self.spec, self.resources) * self.cost.memory.state)

    @property
    def kept_bytes(self) -> int:
        """Disk space of what is kept: the record, and final weights where the spec keeps them."""
        return RECORD_BYTES + (self.cost.memory.weights if self.spec.keep_weights else 0)


@dataclass(frozen=True, slots=True)
class PlannedFinetuning:
    """A finetuning run and its time.

    Attributes:
        done: whether it has its record.
        hours: hours on one device; None if no finished run says it.
    """

    done: bool
    hours: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scale would cost, and the order in which to run it.

    Attributes:
        suite: scale, artifacts and runs.
        device: a key of :data:`suite.plan.rate.DEVICES`.
        runs: the pretraining runs by name, in the order in which to run them.
        needs: names of the runs of each artifact.
        steps: artifacts in the order in which to run them.
        data: size and cost of the scale's data, for the longest run that is not done.
        finetunings: the finetuning runs.
    """

    suite: Suite
    device: str
    runs: dict[str, PlannedRun]
    needs: dict[str, set[str]]
    steps: list[Step]
    data: Estimate
    finetunings: list[PlannedFinetuning]

    @property
    def left(self) -> list[PlannedRun]:
        """The pretraining runs that are not done."""
        return [run for run in self.runs.values() if not run.done]

    def limit(self, run: PlannedRun) -> float:
        """Bytes that a run may hold on one device: the device's memory; on CPUs, an equal share of its job's."""
        return DEVICES[self.device].memory or 1e6 * run.resources["mem_mb"] / run.devices


def make_plan(suite: Suite, results: Path, *, artifact: str | None = None) -> Plan:
    """The plan of a scale, or of one artifact at it.

    Args:
        results: the results folder, which says which runs are done and how fast they were.
        artifact: its name; None for all of ``snakemake all`` that are not built from other artifacts.

    Raises:
        ConfigError: there is no such artifact, or the scale cannot make it.
        DataError: the description of the data is wrong, or its folder of shards is empty.
    """
    scale = suite.scale
    asked = {name: needed(suite, name) for name in _names(suite, artifact)}
    specs = {name: spec for found in asked.values() for name, spec in found.items()}
    pretraining = {name: spec for name, spec in specs.items() if isinstance(spec, RunSpec)}
    device = "h100" if scale.settings.resources.gpus > 0 else "cpu"
    cost = costs(scale, pretraining.values())

    rates, done = Rates(scale, pretraining.values(), cost, device), set()
    now, is_current = time.time(), suite.is_current()
    for name, spec in specs.items():
        if (record := progress(results, spec, now, is_current).record) is not None:
            done.add(name)
            rates.add(spec, record)
    archive = archive_path(scale.name)
    for run in read(archive).values() if archive.exists() else ():
        rates.add(run.spec, run.record)

    runs = {
        name: PlannedRun(spec, name in done, cost[kind(spec)], rates.of(spec), scale.resources(spec.model)) for name, spec in pretraining.items()
    }
    finetunings = [PlannedFinetuning(name in done, rates.finetuning_hours(spec)) for name, spec in specs.items() if name not in runs]
    needs = {name: own for name, found in asked.items() if (own := found.keys() & runs.keys())}
    hours = {name: 0.0 if run.done else run.device_hours for name, run in runs.items()}
    steps = in_order(needs, {name: evidence(suite, name) for name in needs}, hours)
    order = [name for step in steps for name in step.runs]
    ordered = {name: runs[name] for name in (*order, *runs)}  # the rest, which is done, behind
    longest = max((run.spec.steps * run.spec.batch_rows for run in runs.values() if not run.done), default=None)
    return Plan(suite, device, ordered, needs, steps, estimate(scale.data, longest), finetunings)


def _names(suite: Suite, artifact: str | None) -> list[str]:
    if artifact is None:
        return [name for name, found in suite.artifacts.items() if found.in_all and not found.reads]
    suite.check_models(artifact)
    if artifact not in suite.artifacts:
        raise ConfigError(f"there is no artifact {artifact!r}; there are {', '.join(suite.artifacts)}")
    return [artifact]
