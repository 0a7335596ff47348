"""Operations and memory of each kind of run. Runs of one kind have the same operations and memory, which are counted once."""

import contextlib
import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from poet.data.workers import workers
from poet.launch.operations import operations_per_step
from poet.methods import get_method
from poet.system.progress import Progress
from poet.training.spec import RunSpec
from suite.plan.memory import Footprint, footprint
from suite.scale import Scale

#: Fewest kinds that are counted in several processes, and the most processes. Each process first imports libraries for seconds.
WORTH_PROCESSES, MOST_PROCESSES = 8, 8


@dataclass(frozen=True, slots=True)
class Cost:
    """Operations and memory of a run.

    Attributes:
        operations: floating-point operations of a step on all devices; see ``poet.launch.operations``.
        memory: memory on each device.
    """

    operations: int
    memory: Footprint


def devices(resources: dict[str, Any]) -> int:
    """How many devices train a run together: its GPUs, or its processes if it trains on CPUs."""
    return resources["gpus"] or resources["processes"]


def divided(spec: RunSpec, resources: dict[str, Any]) -> int:
    """The number of devices that divide a run's optimizer state; 1 if each holds the whole state."""
    return devices(resources) if resources["shard_optimizer"] and get_method(spec.method).shards_state else 1


def kind(spec: RunSpec) -> str:
    """A key that is equal for runs that cost the same: without seed, learning rates, probes and name."""
    shape = (spec.model, spec.batch_rows, spec.accumulation, spec.steps, spec.precision, spec.method, setting(spec))
    return json.dumps([*shape, spec.to_dict()["architecture"]])


def setting(spec: RunSpec) -> str:
    """A key that is equal for runs with the same parameters of their method, learning rates apart."""
    rates = get_method(spec.method).learning_rates
    return json.dumps({name: value for name, value in sorted(spec.parameters.items()) if name not in rates})


def costs(scale: Scale, runs: Iterable[RunSpec]) -> dict[str, Cost]:
    """The cost of each kind among runs, by :func:`kind`."""
    examples = {kind(spec): spec for spec in runs}
    arguments = [(spec, scale.resources(spec.model)) for spec in examples.values()]
    alone = len(arguments) < WORTH_PROCESSES
    with contextlib.nullcontext() if alone else workers(min(MOST_PROCESSES, os.cpu_count() or 1)) as pool:
        found = []
        with Progress(f"scale {scale.name}: counting operations and memory", len(arguments), "kinds of runs") as progress:
            for cost in (map if alone else pool.map)(_cost, arguments):
                found.append(cost)
                progress.add(1)
    return dict(zip(examples, found, strict=True))


def _cost(given: tuple[RunSpec, dict[str, Any]]) -> Cost:
    spec, resources = given
    with warnings.catch_warnings(action="ignore"):  # deprecation warnings of libraries
        return Cost(operations(spec), footprint(spec, devices=devices(resources), divided=divided(spec, resources)))


def operations(spec: RunSpec) -> int:
    """Operations of a step: :func:`operations_per_step` of models of one and no layers, extended to all layers. Only POET's merges are rounded otherwise.

    Every method trains the parts outside of the layers alike (``poet.methods.contract``), so AdamW is counted for them.
    """
    without = replace(spec, architecture=replace(spec.architecture, layers=0), method="adamw", parameters={})
    one = replace(spec, architecture=replace(spec.architecture, layers=1))
    rest = operations_per_step(without)
    return rest + spec.architecture.layers * (operations_per_step(one) - rest)
