"""How far the runs of a scale are, from their files alone: ``make status SCALE=paper``.

A finished run has ``results/runs/<run>/record.json``. One that has begun keeps ``results/checkpoints/<run>/status.json`` up to date
(``poet.launch.status``). Neither Slurm nor Snakemake is asked, and nothing is written.
"""

import math
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from humanfriendly import format_timespan
from tabulate import tabulate

from poet.finetuning.spec import FinetuningSpec
from poet.launch.sources import training_digest
from poet.launch.status import read_status
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.collection import Suite
from suite.recorded.archive import archive_path, digests
from suite.records import whole_record
from suite.wording import listed

#: States, in the order of the page. A silent run has the status "running", but has not updated it for long. An outdated run has a record
#: of another spec or of other code, and will be trained again. A run that is trained again only because it shares a job with an outdated
#: run, or starts from one, does not count as outdated.
STATES = ("done", "diverged", "running", "silent", "stopped", "failed", "outdated", "not started")
#: A run updates its status at each step, at most every few seconds. It is silent after :data:`QUIET_SECONDS` without an update, or
#: after the time of :data:`QUIET_STEPS` steps if that is longer: evaluating, saving and measuring take the time of several steps.
QUIET_SECONDS, QUIET_STEPS = 600.0, 20


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run, from its files.

    Attributes:
        spec: the run.
        state: one of :data:`STATES`.
        status: the content of ``status.json`` of an unfinished run; else empty.
        age: seconds since ``status.json`` was last updated; never negative.
        record: the record of a run that is done or diverged; else None.
        notes: sentences on unreadable files.
    """

    spec: RunSpec | FinetuningSpec
    state: str
    status: dict[str, Any] = field(default_factory=dict)
    age: float = 0.0
    record: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def seconds_left(self) -> float:
        """Seconds to the last step at the last known pace; NaN if none is known."""
        speed = self.status.get("tokens_per_second")
        return (1 - self.status["step"] / self.spec.steps) * self.spec.tokens / speed if speed else math.nan


def progress(results: Path, spec: RunSpec | FinetuningSpec, now: float, is_current: Callable[[RunSpec | FinetuningSpec, dict[str, Any]], bool]) -> RunProgress:
    """The progress of a run, ``now`` in seconds since 1970. ``is_current``: see :meth:`suite.collection.Suite.is_current`."""
    notes, record, status = [], None, None
    try:
        record = _record(results, spec, notes)
        if record is not None and record["spec_digest"] == spec.digest and is_current(spec, record):
            return RunProgress(spec, "diverged" if record["status"] == "diverged" else "done", record=record)
        status = _status(results, spec, notes)
    except OSError as error:
        notes.append(f"{error.filename} cannot be read ({error.strerror})")
    if status is None:
        return RunProgress(spec, "not started" if record is None else "outdated", notes=tuple(notes))
    state, age = status["state"], max(0.0, now - status["updated"])  # the clock of the run's machine may be ahead
    if state == "running" and status["host"] == socket.gethostname() and not psutil.pid_exists(status["pid"]):
        state = "stopped"  # killed before it could update its status
    elif state == "running" and age > _quiet(spec, status["tokens_per_second"]):
        state = "silent"
    return RunProgress(spec, state, status, age, notes=tuple(notes))


def _record(results: Path, spec: RunSpec, notes: list[str]) -> dict[str, Any] | None:
    """The record in the run's folder, whichever spec it has; None if there is none, or with a note if it is unreadable."""
    try:
        return whole_record(results / "runs" / spec.name / "record.json")
    except RunError as error:
        notes.append(str(error))
        return None


def _status(results: Path, spec: RunSpec, notes: list[str]) -> dict[str, Any] | None:
    """The run's ``status.json`` with a text on its place, ``where``; None if it is missing, of another spec, or (with a note) unreadable."""
    folder = results / "checkpoints" / spec.name
    try:
        status = read_status(folder)
        if status is None or status["spec_digest"] != spec.digest:
            return None
        return {**status, "where": f"job {status['job']}" if status["job"] else f"{status['host']}, process {status['pid']}"}
    except (ValueError, KeyError, TypeError, NotADirectoryError):
        notes.append(f"{folder / 'status.json'} cannot be read as a status: the run writes it anew when it goes on")
        return None


def _quiet(spec: RunSpec, speed: float | None) -> float:
    """Seconds without an update after which a running run counts as silent."""
    return max(QUIET_SECONDS, QUIET_STEPS * spec.tokens / spec.steps / speed if speed else 0.0)


def duration(seconds: float) -> str:
    """A duration in its two largest units: ``duration(7380) == "2 hours and 3 minutes"``; empty for NaN."""
    return "" if math.isnan(seconds) else format_timespan(int(seconds), max_units=2)


def page(scale: str, found: Iterable[RunProgress]) -> str:
    """The printed page: totals, unfinished runs, failed and outdated ones, and notes."""
    found = list(found)
    counts = Counter(run.state for run in found)
    lines = [f"Scale {scale}: {len(found)} runs: " + ", ".join(f"{counts[s]} {s}" for s in STATES if counts[s]) + "."]
    table = [_line(run) for run in found if run.state in ("running", "silent", "stopped")]
    if table:
        lines += ["", tabulate(table, "keys", "plain", disable_numparse=True)]
    if left := [run for run in found if run.state == "running" and not math.isnan(run.seconds_left)]:
        last = max(left, key=lambda run: run.seconds_left)
        lines += ["", f"The last of those that are running ends in {duration(last.seconds_left)}: {last.spec.name}."]
    for run in found:
        if run.state == "failed":
            lines += ["", f"{run.spec.name} failed {duration(run.age)} ago after step {run.status['step']}: {run.status['error']}"]
    if outdated := [run.spec.name for run in found if run.state == "outdated"]:
        lines += ["", f"Outdated, with a record of another spec or of other code, so that they will be trained again: {listed(outdated)}."]
    if notes := [note for run in found for note in run.notes]:
        lines += ["", *(f"- {note}." for note in notes)]
    return "\n".join(lines)


def _line(run: RunProgress) -> dict[str, str]:
    status, speed = run.status, run.status["tokens_per_second"]
    return {
        "run": run.spec.name,
        "state": run.state,
        "step": f"{status['step']:,} of {status['steps']:,}",
        "tokens/s": f"{speed:,.0f}" if speed else "",
        "time left": duration(run.seconds_left),
        "devices": status["devices"],
        "where": status["where"],
        "last word": f"no word for {duration(run.age)}" if run.state == "silent" else f"{duration(run.age)} ago",
        "saved": f"step {status['checkpoint_step']:,}",
    }


def status(suite: Suite, results: Path) -> str:
    """The page of all runs of a scale. Trials that have not begun are left out: ``python -m suite.tuning --status`` has them."""
    now, is_current = time.time(), suite.is_current()
    found = [progress(results, spec, now, is_current) for spec in suite.all_specs.values()]
    asked = [run for run in found if run.spec.name in suite.specs or run.state != "not started"]
    missing = [run.spec for run in asked if run.state == "not started"]
    return page(suite.scale.name, asked) + _recorded(suite, missing) + _neither(suite, missing)


def _recorded(suite: Suite, missing: Iterable[RunSpec | FinetuningSpec]) -> str:
    """A sentence on the pretraining runs that ``RESUME=recorded`` need not train; empty if there are none."""
    recorded, first = digests(archive_path(suite.scale.name)), suite.scale.seeds[0]
    pretraining = (spec for spec in missing if isinstance(spec, RunSpec) and not (spec.keep_weights and spec.seed == first))  # archives have no weights
    count = sum(recorded.get(s.name) == (s.digest, training_digest(s.method, suite.scale.device(s.model))) for s in pretraining)
    return f"\n\nRecorded with today's spec and training code: {count} of those not started. RESUME=recorded restores them." if count else ""


def _neither(suite: Suite, missing: Iterable[RunSpec | FinetuningSpec]) -> str:
    """Per artifact and model, the runs that are neither here nor recorded; empty if there are none, or if the scale has no recorded runs."""
    recorded = digests(archive_path(suite.scale.name))
    left = {spec.name for spec in missing if recorded.get(spec.name, ("",))[0] != spec.digest}
    if not recorded or not left:
        return ""
    lines = []
    for name, specs in suite.asked.items():
        asked, lacking = Counter(spec.model for spec in specs), Counter(spec.model for spec in specs if spec.name in left)
        if lacking:
            lines.append(f"- {name}: " + ", ".join(f"{count} of {asked[model]} of {model}" for model, count in lacking.items()))
    return "\n\n".join(("", f"Neither here nor recorded: {len(left)} runs. Some are of several artifacts.", "\n".join(lines)))
