"""Which runs of a results folder were restored from an archive, and the sentences that say so."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from poet.data.files import read_json
from poet.finetuning.spec import FinetuningSpec
from poet.launch.records import record_digest
from poet.system.files import write_text
from poet.training.spec import RunSpec
from suite.recorded.run import device_of
from suite.records import changed_code

#: Name of the file that marks a restored run, beside its record.
NOTE = "origin.json"
#: Characters of a commit that are shown, and the most commits of one machine that are named.
_SHORT, _NAMED = 9, 3
_DIRTY = " with uncommitted changes"
#: How :func:`sentence` begins.
_SAID = "Recorded runs, not trained here: "


def write_note(folder: Path, origin: str, record: dict[str, Any]) -> None:
    """Write into a run's folder that the run was restored. The note holds only for this record."""
    write_text(folder / NOTE, json.dumps({"origin": origin, "record_sha256": record["record_sha256"]}) + "\n")


def read_origin(folder: Path) -> tuple[str, dict[str, Any]] | None:
    """The origin of a restored run (empty: this project's own archive) and its record; None if the run was trained here.

    The note counts only for the record that it names: a run that was trained again in the same folder has another record.
    """
    note, record = (read_json(folder / name) or {} for name in (NOTE, "record.json"))  # a damaged record is reported by its readers
    return (note.get("origin", ""), record) if note and record and note.get("record_sha256") == record_digest(record) else None


def origins(results: Path, specs: Iterable[RunSpec | FinetuningSpec]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Origin and record of every restored run among the given ones, by name."""
    found = {spec.name: read_origin(results / "runs" / spec.name) for spec in specs}
    return {name: origin for name, origin in found.items() if origin is not None}


def foreign(results: Path, specs: Iterable[RunSpec | FinetuningSpec]) -> str:
    """How many of the given runs are foreign, such as "3 of 12 from lab-b"; empty if none is."""
    specs = _there(results, specs)
    found = Counter(origin for origin, _ in origins(results, specs.values()).values() if origin)
    return "; ".join(f"{n} of {len(specs)} from {origin}" for origin, n in sorted(found.items()))


def sentence(results: Path, specs: Iterable[RunSpec | FinetuningSpec]) -> str:
    """A sentence on the given runs that were not trained here, with their machines and commits; empty if there are none."""
    specs = _there(results, specs)
    groups: dict[tuple[str, str], Counter[str]] = {}
    for name, (origin, record) in origins(results, specs.values()).items():
        where = record["provenance"]
        commit = f"commit {where['commit'][:_SHORT]}" if where["commit"] else "outside a checkout"
        device = device_of(record)
        stale = f", {changed} changed since" if (changed := changed_code(specs[name], record, device)) else ""
        source = f"foreign, from {origin}, " if origin else ""
        place = f"{source}on {where['machine']['cpu']}, {where['device']}"
        groups.setdefault((place, stale), Counter())[commit + (_DIRTY if where["dirty"] else "")] += 1
    if not groups:
        return ""
    parts = [f"{place}, {_commits(commits)}{stale}" for (place, stale), commits in groups.items()]
    totals = [commits.total() for commits in groups.values()]
    listed = parts[0] if len(parts) == 1 else "; ".join(f"{n} {part}" for part, n in sorted(zip(parts, totals, strict=True)))
    return f"{_SAID}{sum(totals)} of {len(specs)} ({listed})."


def without_sentence(page: str) -> str:
    """An artifact's Markdown page without the :func:`sentence` at its end, which is true of one results folder alone."""
    before, said, _ = page.partition(f"\n\n{_SAID}")
    return f"{before}\n" if said else page


def _there(results: Path, specs: Iterable[RunSpec | FinetuningSpec]) -> dict[str, RunSpec | FinetuningSpec]:
    """The given runs that a results folder has, by name: it lacks those of artifacts that were left out."""
    return {spec.name: spec for spec in specs if (results / "runs" / spec.name / "record.json").exists()}


def _commits(commits: Iterable[str]) -> str:
    """The commits by name, or their number if there are many."""
    named = sorted(commits)
    if len(named) <= _NAMED:
        return " and ".join(named)
    dirty = sum(name.endswith(_DIRTY) for name in named)
    return f"{len({name.removesuffix(_DIRTY) for name in named})} commits{dirty and f', {dirty} of them{_DIRTY}' or ''}: each record names its own"
