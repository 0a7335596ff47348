"""Every table, every figure and the report from recorded runs: nothing is trained, and no job is started for a run."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import repeat

from poet.data.files import exclusive
from poet.finetuning.spec import FinetuningSpec
from suite.artifact import names_read
from suite.context import Context
from suite.discovery import find
from suite.scale import Scale, load_scale
from suite.collection import RESULTS, Suite, load_suite
from poet.system.errors import UserError
from poet.system.progress import say
from poet.training.spec import RunSpec
from suite.recorded.archive import archive_path, read
from suite.recorded.marking import build_artifact, take_times
from suite.recorded.restore import unpack
from suite.recorded.run import RecordedError, RecordedRun
from suite.tuning.protocol import load_protocol


def runs_of_seeds(recorded: Iterable[RecordedRun]) -> Counter[int]:
    """How many pretraining runs were recorded with each seed; trials, which have a seed of their own, do not count."""
    trials = load_protocol().seed
    return Counter(run.spec.seed for run in recorded if isinstance(run.spec, RunSpec) and run.spec.seed != trials)


def usual(runs: Counter[int]) -> list[int]:
    """The seeds with which most settings were recorded: each has more than half as many runs as the most frequent one.

    A few settings that lack a seed or have more change no table of the others."""
    most = max(runs.values(), default=0)
    return sorted(seed for seed, n in runs.items() if n > most / 2)


def build(scale: str, seeds: Sequence[int] | None = None) -> tuple[list[str], bool]:
    """Unpack the recorded runs of a scale into ``results/recorded/<scale>``, and build from them what can be built.

    Args:
        seeds: None takes the :func:`usual` ones.

    Returns:
        (lines, failed). Lines name each seed and each artifact of ``all`` that was left out, and each artifact that was built without some models or seeds; the last
        one sums up. ``failed``: whether there is such an artifact, except those of times, and those with finetuning runs if the archive has no finetuning runs at all.

    Raises:
        RecordedError: the archive is missing or damaged, or has nothing for these seeds.
        ConfigError: there is no such scale.
        DiskError: a file cannot be written.
    """
    started = time.monotonic()
    load_scale({"scale": scale, "seeds": [0]})  # an unknown scale raises its own error, not one about a missing archive
    results = RESULTS / "recorded" / scale
    recorded = read(archive_path(scale))
    seeds, lines = _seeds(scale, runs_of_seeds(recorded.values()), seeds)
    suite = load_suite({"scale": scale, "seeds": seeds or [0]})
    if not suite.specs.keys() & recorded.keys():
        raise RecordedError(f"no table and no figure of scale {scale} uses any of the recorded runs: keep its runs with `make record SCALE={scale}`")
    there = {name for name, spec in suite.specs.items() if name in recorded and recorded[name].spec.digest == spec.digest}
    with exclusive(results):  # a second call waits
        for record in list((results / "runs").rglob("record.json")):  # of an earlier archive
            if str(record.parent.relative_to(results / "runs")) not in there:
                shutil.rmtree(record.parent)
        for name in sorted(there):
            unpack(recorded[name], results / "runs" / name)
        say(f"{scale}: {len(there)} of {len(suite.specs)} runs unpacked into {results / 'runs'}, seeds {', '.join(map(str, seeds))}")
        left_out, narrowed = _parts(suite, recorded, there)
        built = _in_order(suite, [name for name in suite.artifacts if name not in left_out], Context(suite.scale, results, left_out, narrowed))
        for name in left_out:  # a table of an earlier archive must not stay beside the others
            for output in suite.artifacts[name].outputs:
                (results / output).unlink(missing_ok=True)
    wanted = {name: reason for name, reason in left_out.items() if suite.artifacts[name].in_all}
    unfinetuned = not any(isinstance(run.spec, FinetuningSpec) for run in recorded.values())
    short = (suite.artifacts[name] for name in (*wanted, *narrowed))
    failed = any(not (artifact.timed or unfinetuned and artifact.finetunings(suite.scale)) for artifact in short)
    lines += [
        f"built at {', '.join(part.models)} with seed {', '.join(map(str, part.seeds))} alone: {name}: {_missing(suite, name, recorded, there)}"
        for name, part in narrowed.items()
        if name in built
    ]
    lines += [f"not built: {name}: {reason}" for name, reason in wanted.items()]
    missing = f"; {len(wanted)} not, for the reasons above" if wanted else ""
    page = results / "report.html" if "report" in built else results
    return [*lines, f"{len(built)} artifacts built from {len(there)} recorded runs in {time.monotonic() - started:.0f} s: {page}{missing}"], failed


def _seeds(scale: str, runs: Counter[int], asked: Sequence[int] | None) -> tuple[Sequence[int], list[str]]:
    """The seeds to build with, and a sentence on each recorded seed that is left out though none was asked for."""
    if runs and (unknown := sorted(set(asked or ()) - runs.keys())):
        raise RecordedError(f"no run of seed {unknown[0]} is recorded at scale {scale}: ask for some of {', '.join(map(str, sorted(runs)))}")
    if asked:
        return asked, []
    most = usual(runs)
    rest = sorted(runs.keys() - set(most))
    return most, [f"seed {seed} is left out: {runs[seed]} runs of it are recorded, and {runs[most[0]]} of seed {most[0]}" for seed in rest]


def _parts(suite: Suite, recorded: dict[str, RecordedRun], there: set[str]) -> tuple[dict[str, str], dict[str, Scale]]:
    """The artifacts that cannot be built, with the reason; and the part of the scale at which others can be."""
    parts = {name: _part(suite, name, there) for name in suite.artifacts}
    left_out = {name: _missing(suite, name, recorded, there) for name, part in parts.items() if not part}
    for name, artifact in suite.artifacts.items():
        if artifact.timed and not all((archive_path(suite.scale.name).parent / output).exists() for output in artifact.outputs):
            left_out[name] = "its numbers are times, and none are recorded at this scale"
    return left_out, {name: part for name, part in parts.items() if part and part is not suite.scale}


def _part(suite: Suite, name: str, there: set[str]) -> Scale | None:
    """The scale with those of its models, or else of its seeds, that lack none of an artifact's runs. None if none is left, or the artifact needs another."""
    artifact, scale = suite.artifacts[name], suite.scale
    specs = {spec.name: spec for spec in suite.asked[name]}
    lacking = [spec for run, spec in specs.items() if run not in there]
    if not lacking:
        return scale
    models, seeds = ({getattr(spec, field) for spec in lacking} for field in ("model", "seed"))
    for part in (scale.only(m for m in scale.models if m not in models), replace(scale, seeds=tuple(s for s in scale.seeds if s not in seeds))):
        rest = {spec.name for spec in artifact.specs(part)} if part.models and part.seeds and not artifact.missing(part) else set()
        # An artifact that takes another model in place of a missing one would show what it does not show at this scale.
        if rest and rest <= there & specs.keys():
            return part
    return None


def _missing(suite: Suite, name: str, recorded: dict[str, RecordedRun], there: set[str]) -> str:
    """Which runs of an artifact are missing."""
    specs = {spec.name for spec in suite.asked[name]}
    missing = sorted(specs - there)
    why = "recorded with another spec" if missing[0] in recorded else "not recorded"
    return f"{len(missing)} of its {len(specs)} runs are missing, such as {missing[0]}, which is {why}"


def _in_order(suite: Suite, names: list[str], context: Context) -> list[str]:
    """Build artifacts in parallel, each after those that it reads. Returns the names of those built; the others join ``context.left_out`` with a reason."""
    left_out = context.left_out
    waiting = TopologicalSorter({name: [other for other in names_read(suite.artifacts[name], suite.artifacts) if other in names] for name in names})
    waiting.prepare()
    done = []
    os.environ["OMP_NUM_THREADS"] = "1"  # as in a job of the workflow; read where torch is loaded
    # Spawned processes, each of which loads everything once: a fork would copy locks that threads of this process hold.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool, _ended_with_its_processes():
        while waiting.is_active():
            ready = waiting.get_ready()
            gone = {other: reason for other, reason in left_out.items() if suite.artifacts[other].in_all}
            built = pool.map(_build_one, ready, repeat(replace(context, left_out=gone)))
            for name, (seconds, reason) in zip(ready, built, strict=True):
                if reason:
                    left_out[name] = reason
                else:
                    done.append(name)
                say(f"{name}: {reason or f'{seconds:.1f} s'} ({len(done)} of {len(names)})")
            waiting.done(*ready)
    return done


@contextlib.contextmanager
def _ended_with_its_processes() -> Iterator[None]:
    """End the child processes with this one when it is terminated or interrupted. They write files whole or not at all."""

    def end(number: int, frame: object) -> None:
        for process in (children := multiprocessing.active_children()):
            process.terminate()
        for process in children:
            process.join(timeout=5)
        os._exit(128 + number)  # an orderly exit would wait for a pool whose locks may have died with its processes

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _build_one(name: str, context: Context) -> tuple[float, str]:
    """Build an artifact in a process of the pool. Returns its seconds, and why it could not be built (empty if it was)."""
    started, artifact, reason = time.monotonic(), find(name), ""
    try:
        if artifact.timed:
            take_times(artifact, archive_path(context.scale.name).parent, context.results)
        else:
            build_artifact(name, context.of(name))
    except UserError as error:
        reason = str(error)
    except FileNotFoundError as error:  # of an artifact that was left out
        reason = f"{error.filename} is missing"
    return time.monotonic() - started, reason
