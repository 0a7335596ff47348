"""What would be made again for a target, and which file, spec or parameter is the reason.

Snakemake's ``--summary`` and :func:`suite.targets.lost_files` say which files would be made; nothing is trained or written. The reasons come
from the records of runs and from the notes of source digests of the prepared data and of each artifact.
"""

import csv
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from poet.finetuning.sources import finetuning_files
from poet.finetuning.spec import FinetuningSpec
from poet.launch.sources import data_sources, file_digests, training_sources
from poet.system.errors import UserError
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.artifact import names_read
from suite.collection import RESULTS, Suite
from suite.recorded.run import files_of
from suite.records import whole_record
from suite.sources import artifact_files, note_path, read_note
from suite.targets import check_targets, lost_files
from suite.wording import listed


def why(suite: Suite, target: str) -> str:
    """What would be made again, a line for each reason; one line if nothing would.

    Raises:
        UserError: there is no such target at the scale, or Snakemake cannot say what it would do.
    """
    check_targets(suite, [target])
    pending = _lost(suite, target) | _pending(suite, target)
    # In the order of making. Files that are only copied are a reason only if there is no other.
    lines = [*_data(suite, pending), *_runs(suite, pending), *_searches(suite, pending), *_artifacts(suite, pending)]
    lines = lines or [f"{path} is only copied, from {suite.folder}: nothing is trained or built" for path in pending][:1]
    if not lines:
        return f"Nothing: {target} is up to date"
    return "\n".join([f"{target}, scale {suite.scale.name}, seeds {listed(map(str, suite.scale.seeds), 9)}:", *(f"- {line}" for line in lines)])


def _pending(suite: Suite, target: str) -> dict[Path, str]:
    """The files that Snakemake would make for a target, each with its status in Snakemake's summary."""
    seeds = json.dumps(list(suite.scale.seeds))
    command = [sys.executable, "-m", "snakemake", "--summary", target, "--config", f"scale={suite.scale.name}", f"seeds={seeds}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()]
        raise UserError(f"snakemake cannot say what it would do: {(errors or said or ['it said nothing'])[0].strip()}")
    lines = list(csv.DictReader(done.stdout.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    return {Path(line["output_file"]): line["status"] for line in lines if line["plan"] != "no update"}


def _lost(suite: Suite, target: str) -> dict[Path, str]:
    """The records of runs with deleted files, and the artifacts made from them; Snakemake's summary does not list these."""
    lost = lost_files(suite, [target])
    records = {path.with_name("record.json") for paths in lost.values() for path in paths}
    return dict.fromkeys([*records, *(suite.outputs(name)[0] for name in lost)], "files of runs are gone")


def _data(suite: Suite, pending: Mapping[Path, str]) -> Iterator[str]:
    for folder in (suite.dataset, *map(Path, suite.task_folders)):
        if (meta := folder / "meta.json") in pending:
            yield f"{folder} is prepared: {_of_data(suite, folder) if meta.exists() else 'it is not there'}"


def _of_data(suite: Suite, folder: Path) -> str:
    note = read_note(folder / "sources.json")
    changed = _changed(note["files"], file_digests(data_sources(suite.scale.data["corpus"]))) if note else ""
    return changed or "its code or the text that it is made from changed, or files of it are missing"


def _runs(suite: Suite, pending: Mapping[Path, str]) -> Iterator[str]:
    names = dict.fromkeys(str(path.parent.relative_to(RESULTS / "runs")) for path in pending if path.name in ("record.json", "history.csv"))
    known = suite.all_specs  # a BART from elsewhere has a record, too, but is not trained
    reasons = {name: _of_run(suite, known[name]) for name in names if name in known}
    for job in itertools.chain(*map(suite.shared_jobs, suite.scale.models), suite.finetuning_jobs()):
        if any(reasons.get(name) for name in job):
            reasons |= {name: reasons[name] or "others that share their process are" for name in job if name in reasons}
    said = {name: reason or _of_snakemake(pending[RESULTS / "runs" / name / "record.json"]) for name, reason in reasons.items()}
    for reason, group in _grouped(said):
        yield f"{_counted(group, 'run')} trained: {reason}"


def _of_snakemake(status: str) -> str:
    """Snakemake's reason, for a run whose own files give none."""
    others = ": other runs share its process than before, as where other SEEDS are asked for" if "params changed" in status else ""
    return f"snakemake says: {status}{others}"


def _of_run(suite: Suite, spec: RunSpec | FinetuningSpec) -> str:
    """Why a run would be trained, from its files; empty if they give no reason."""
    folder = RESULTS / "runs" / spec.name
    if not (folder / "record.json").exists():
        return "no record yet"
    try:
        record = whole_record(folder / "record.json")
        before, digest, files = record["spec"], record["spec_digest"], record["sources"]
    except (RunError, TypeError, KeyError, OSError):
        return "the record cannot be read, or was edited"
    reasons = []
    if digest != spec.digest:
        reasons.append(f"the spec changed: {_differences(before, json.loads(json.dumps(spec.to_dict())))}")
    if suite.scale.settings.retrain:
        device = suite.scale.device(spec.model)
        if isinstance(spec, FinetuningSpec):
            today = finetuning_files(spec, device)
        else:
            today = file_digests([*training_sources(spec.method, device), *data_sources(spec.data["corpus"])])
        reasons.append(_changed(files, today))
    reasons += [f"{file} is missing" for file in files_of(spec) if not (folder / file).exists()]
    return "; ".join(filter(None, reasons))


def _searches(suite: Suite, pending: Mapping[Path, str]) -> Iterator[str]:
    """Lines on the searches of finetuning's learning rates."""
    parts = {f"{task} from {base.variant}": suite.tuned_part(base, task) for base, task in suite.finetuning_searches()}
    for status, group in _grouped({name: pending[path] for name, path in parts.items() if path in pending}):
        yield f"learning rates of finetuning are searched ({listed(group, 2)}): snakemake says: {status}"


def _artifacts(suite: Suite, pending: Mapping[Path, str]) -> Iterator[str]:
    made = {name: [path for path in suite.outputs(name) if path in pending] for name in suite.artifacts}
    said = {name: _of_artifact(suite, name, pending) for name, paths in made.items() if paths}
    for reason, group in _grouped(said):
        yield f"{_counted(group, 'artifact')} built: {reason}"


def _of_artifact(suite: Suite, name: str, pending: Mapping[Path, str]) -> str:
    outputs = suite.outputs(name)
    if missing := [str(path) for path in outputs if not path.exists()]:
        return "not built yet" if len(missing) == len(outputs) else f"{listed(missing)} is missing"
    specs, note, reasons = suite.asked[name], read_note(note_path(suite.folder, name)), []
    if note:
        if note.get("seeds") != list(suite.scale.seeds):
            reasons.append(f"seeds {note.get('seeds')} -> {list(suite.scale.seeds)}")
        elif note.get("specs") != suite.digests(name):
            reasons.append("the specs of its runs changed")
        reasons.append(_changed(note["files"], file_digests(artifact_files(name))))
    built, records = min(path.stat().st_mtime for path in outputs), suite.records(name)
    if any(path in pending for path in records):
        reasons.append("its runs are trained")
    elif newer := [spec.name for spec, path in zip(specs, records, strict=True) if path.stat().st_mtime > built]:
        reasons.append(f"runs are newer: {listed(newer)}")
    if any(path in pending for path in suite.sources(name)):
        others = [other for other in names_read(suite.artifacts[name], suite.artifacts) if pending.keys() & suite.outputs(other)]
        reasons.append(f"what it is built from is: {listed(others)}")
    return "; ".join(filter(None, reasons)) or f"snakemake says: {pending[next(path for path in outputs if path in pending)]}"


def _changed(before: Mapping[str, str], today: Mapping[str, str]) -> str:
    """Which files changed, are new or are gone, by their digests; empty if none."""
    found = [f"{name} changed" for name in today if name in before and before[name] != today[name]]
    found += [f"{name} is new" for name in today.keys() - before.keys()] + [f"{name} {'counts no longer' if Path(name).exists() else 'is gone'}" for name in before.keys() - today.keys()]
    return listed(sorted(found))


def _differences(before: Any, after: Any) -> str:
    old, new = (pd.json_normalize(spec).to_dict("records")[0] for spec in (before, after))
    return listed(f"{key} {old.get(key)} -> {new.get(key)}" for key in {**old, **new} if old.get(key) != new.get(key))


def _grouped(said: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Names grouped by their reason, the largest group first."""
    groups: dict[str, list[str]] = {}
    for name, reason in said.items():
        groups.setdefault(reason, []).append(name)
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def _counted(names: list[str], what: str) -> str:
    return f"{names[0]} is" if len(names) == 1 else f"{len(names)} {what}s ({listed(names, 2)}) are"

