"""A plan: the cost of every run of a scale or an artifact, and the order of the artifacts."""

import math
import time
from dataclasses import dataclass
from pathlib import Path

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from poet.system.validation import ConfigError
from suite.collection import Suite
from suite.plan.disk import Disk, disk
from suite.plan.finetuning import Finetunings, estimate
from suite.plan.kinds import Cost, costs, devices, divided, kind
from suite.plan.order import Step, evidence, finetuned, in_order, needed
from suite.recorded.archive import archive_path, read
from suite.plan.rate import DEVICES, Rate, Rates
from suite.status import progress


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run and its cost.

    Attributes:
        spec: the run.
        done: whether it has its record.
        devices: number of GPUs that train it, or of processes on CPUs.
        cost: operations of a step, and memory.
        rate: speed of one device.
        limit_minutes: the time limit of its job.
    """

    spec: RunSpec
    done: bool
    devices: int
    cost: Cost
    rate: Rate
    limit_minutes: int

    @property
    def operations(self) -> int:
        return self.cost.operations * self.spec.steps

    @property
    def hours(self) -> float:
        """Wall time from the first step to the last."""
        return self.operations / (self.rate.per_second * self.devices) / 3600

    @property
    def jobs(self) -> int:
        """How many jobs the run takes under its time limit: each job continues where the last one was stopped."""
        return math.ceil(60 * self.hours / self.limit_minutes)

    @property
    def device_hours(self) -> float:
        return self.hours * self.devices


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scale would cost, and the order in which to run it.

    Attributes:
        suite: scale, artifacts and runs.
        device: a key of :data:`suite.plan.rate.DEVICES`.
        limits: bytes that a run may hold on one device, by model.
        runs: the pretraining runs by name, in the order in which to run them.
        needs: names of the runs of each artifact.
        steps: artifacts in the order in which to run them.
        disk: disk space for the runs that are not done.
        finetunings: number and time of the finetuning runs.
    """

    suite: Suite
    device: str
    limits: dict[str, float]
    runs: dict[str, PlannedRun]
    needs: dict[str, set[str]]
    steps: list[Step]
    disk: Disk
    finetunings: Finetunings

    @property
    def left(self) -> list[PlannedRun]:
        """The runs that are not done."""
        return [run for run in self.runs.values() if not run.done]


def make_plan(suite: Suite, results: Path, *, artifact: str | None = None, device: str | None = None, mfu: float = 0.3) -> Plan:
    """The plan of a scale, or of one artifact at it.

    Args:
        suite: the scale with its seeds.
        results: the results folder, which says which runs are done and how fast they were.
        artifact: its name; None for all of ``snakemake all`` that are not built from other artifacts.
        device: a key of :data:`suite.plan.rate.DEVICES`; None for an H100, or a core of a CPU if the scale trains on CPUs.
        mfu: model FLOPs utilization: the assumed share of the device's peak where nothing was measured.

    Raises:
        ConfigError: there is no such artifact or device, the scale cannot make the artifact or train on the device, or ``mfu`` is not in (0, 1].
        DataError: see :func:`suite.plan.disk.disk`.
    """
    if not 0 < mfu <= 1:
        raise ConfigError(f"mfu: {mfu:g} is no share of a device's peak, such as 0.4")
    scale = suite.scale
    names = _names(suite, artifact)
    specs = {name: needed(suite, name) for name in names}
    runs = {name: spec for found in specs.values() for name, spec in found.items()}
    resources = {model: scale.resources(model) for model in scale.models}
    device = _device(suite, device)
    limits = {model: DEVICES[device].memory or 1e6 * asked["mem_mb"] / devices(asked) for model, asked in resources.items()}
    found = costs(scale, runs.values())

    rates, now, is_current = Rates(scale, found, device, mfu), time.time(), suite.is_current()
    states = {name: progress(results, spec, now, is_current) for name, spec in runs.items()}
    for name, run in states.items():
        if run.record is not None:
            rates.add(runs[name], run.record)
    archive = archive_path(scale.name)
    recorded = read(archive).values() if archive.exists() else []
    rates.add_archived(recorded, runs.values())

    finetuning_specs = {name: spec for artifact in names for name, spec in finetuned(suite, artifact).items()}
    records = {spec: progress(results, spec, now, is_current).record for spec in finetuning_specs.values()}
    finished = [(spec, record) for spec, record in records.items() if record is not None]
    finished += [(run.spec, run.record) for run in recorded if isinstance(run.spec, FinetuningSpec)]
    finetunings = estimate({spec: record is not None for spec, record in records.items()}, finished, device)

    lines = {}
    for name, spec in runs.items():
        asked, done = resources[spec.model], states[name].record is not None
        lines[name] = PlannedRun(spec, done, devices(asked), found[kind(spec)], rates.of(spec), asked["runtime"])
    needs = {name: set(found) for name, found in specs.items() if found}
    hours = {name: 0.0 if line.done else line.device_hours for name, line in lines.items()}
    steps = in_order(needs, {name: evidence(suite, name) for name in needs}, hours)
    order = [run for step in steps for run in step.runs]
    ordered = {name: lines[name] for name in [*order, *(name for name in lines if name not in set(order))]}
    left = [(line.spec, line.cost.memory, divided(line.spec, resources[line.spec.model])) for line in lines.values() if not line.done]
    return Plan(suite, device, limits, ordered, needs, steps, disk(scale, left), finetunings)


def _names(suite: Suite, artifact: str | None) -> list[str]:
    if artifact is None:
        return [name for name, found in suite.artifacts.items() if found.in_all and not found.reads]
    suite.check_models(artifact)
    if artifact not in suite.artifacts:
        raise ConfigError(f"there is no artifact {artifact!r}; there are {', '.join(suite.artifacts)}")
    return [artifact]


def _device(suite: Suite, device: str | None) -> str:
    on_gpu = suite.scale.settings.resources.gpus > 0
    device = device or ("h100" if on_gpu else "cpu")
    if device not in DEVICES:
        raise ConfigError(f"there is no device {device!r}; known are {', '.join(DEVICES)} (suite/plan/rate.py)")
    if on_gpu == (device == "cpu"):
        raise ConfigError(f"scale {suite.scale.name} trains on {'GPUs' if on_gpu else 'CPUs'}: choose another device than {device}")
    return device
