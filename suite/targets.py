"""The targets of a scale: checking those of a command line, and remaking artifacts whose runs were deleted."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from poet.data.description import row_files
from poet.data.files import files_of, read_json, whole
from poet.finetuning.methods import FINETUNERS
from poet.finetuning.tasks import TASKS
from poet.methods import all_rows
from poet.system.validation import ConfigError
from suite.artifact import names_read
from suite.collection import RESULTS, Suite
from suite.sources import note_path, read_note


def files(suite: Suite) -> list[str]:
    """Every file that can be a target, tables first."""
    found = [path for name in suite.artifacts for path in sorted((*suite.shown(name), *suite.outputs(name)), key=lambda p: p.suffix != ".csv")]
    found += [path for name in suite.all_specs for path in made(suite, name)]
    found += [suite.folder / "finetuning_rates.csv", *(suite.tuned_part(base, task) for base, task in suite.finetuning_searches())]
    return list(map(str, [*found, suite.dataset / "meta.json", *(suite.dataset / name for name in row_files(suite.scale.data))]))


def made(suite: Suite, name: str) -> list[Path]:
    """The files of a run that Snakemake tracks. It does not track the others (probes, summaries)."""
    return [RESULTS / "runs" / name / file for file in ("record.json", *(["history.csv"] if name in suite.trainable else []))]


def nearest(suite: Suite, target: str, others: Iterable[str] = ()) -> str:
    """The target file, or the one of other targets, whose name is most like the given one."""

    def likeness(file: str) -> tuple[float, bool]:
        return difflib.SequenceMatcher(None, Path(target).stem, Path(file).stem).ratio(), Path(file).suffix == Path(target).suffix

    return max([*others, *(file for file in files(suite) if file.startswith(f"{RESULTS}/"))], key=likeness)


def check_targets(suite: Suite, targets: Iterable[str]) -> None:
    """Refuse targets that this scale cannot make.

    Raises:
        ConfigError: a target is unknown, belongs to another scale, or lacks a model; one sentence that says which.
    """
    known = {*files(suite), *suite.artifacts, "all", "check", "data", "inputs"}
    for target in (os.path.relpath(given) for given in targets):
        suite.check_models(Path(target).name.partition(".")[0])
        scale, _, output = target.removeprefix(f"{RESULTS}/").partition("/")
        if scale != suite.scale.name and any(output in a.outputs for a in suite.artifacts.values()):
            raise ConfigError(f"{target} is of scale {scale}, and {suite.scale.name} is asked for: add SCALE={scale}, or --config scale={scale}")
        name = target.removeprefix(f"{RESULTS}/runs/").rpartition("/")[0]
        if target.startswith(f"{RESULTS}/runs/") and name not in suite.all_specs:
            if "/finetuned/" in name:
                known_are = f"tasks are {', '.join(TASKS)}; methods are {', '.join(FINETUNERS)}"
            else:
                known_are = f"models are {', '.join(suite.scale.models)}; methods are {', '.join(all_rows())}"
            raise ConfigError(
                f"no artifact asks for a run {name!r} at scale {suite.scale.name} with seeds {list(suite.scale.seeds)}: what reads it has to list it in `runs`; {known_are}"
            )
        if target not in known:
            raise ConfigError(f"{target} is no target at scale {suite.scale.name}: the nearest is {nearest(suite, target)}; docs/artifacts.md lists all")


def unmake_data(suite: Suite) -> list[str]:
    """Delete the data's meta.json if a shard is missing or cut short, so that Snakemake, which does not track shards, prepares the data again. Returns notes for the user."""
    meta = suite.dataset / "meta.json"
    parts = (read_json(meta) or {}).get("splits", {}).values()
    gone = [file["file"] for part in parts for file in files_of(part) if not whole(file, suite.dataset)]
    if not gone:
        return []
    meta.unlink()
    return [f"note: {len(gone)} files of {suite.dataset} are gone or cut short, such as {gone[0]}: the next run that reads them has them prepared again"]


def built(suite: Suite, name: str) -> bool:
    """Whether an artifact's files are there and, by its note, were made from the runs of today's specs and seeds."""
    note = read_note(note_path(suite.folder, name)) or {}
    return note.get("specs") == suite.digests(name) and all(path.exists() for path in suite.outputs(name))


def checked_tables(suite: Suite) -> tuple[list[str], list[str]]:
    """The tables that a check compares, and those that lie there and are not compared.

    Snakemake makes the tables of ``all`` anew. Others may be of other seeds or rates than those of today.
    """
    outputs = {output: name for name, artifact in suite.artifacts.items() for output in artifact.outputs}
    tables = {output: name for output, name in outputs.items() if output.endswith(".csv")}
    compared = [output for output, name in tables.items() if suite.artifacts[name].in_all or built(suite, name)]
    return compared, [output for output in tables if output not in compared and (suite.folder / output).exists()]


def lost_files(suite: Suite, targets: Iterable[str]) -> dict[str, list[Path]]:
    """The deleted run files behind up-to-date artifacts among the targets (none: all), by artifact name.

    Snakemake does not notice that an input of an up-to-date file was deleted. An artifact whose specs changed is not listed: Snakemake makes it again anyway.
    """
    found: dict[str, list[Path]] = {}
    for name in _wanted(suite, targets):
        files = (path for spec in suite.asked[name] for path in made(suite, spec.name))
        if built(suite, name) and (gone := [file for file in files if not file.exists()]):
            found[name] = gone
    return found


def _wanted(suite: Suite, targets: Iterable[str]) -> list[str]:
    """Names of the artifacts that the targets ask for, and of the artifacts that these are built from."""
    targets = {os.path.relpath(target) for target in targets} or {"all"}
    wanted = [n for n in suite.artifacts if targets & {n, *map(str, (*suite.shown(n), *suite.outputs(n)))}]
    if targets & {"all", "check"}:
        wanted += suite.in_all
    return list(dict.fromkeys(n for one in wanted for n in (one, *names_read(suite.artifacts[one], suite.artifacts))))


def unmake_lost(suite: Suite, targets: Iterable[str]) -> list[str]:
    """Delete a file of each artifact that :func:`lost_files` finds, so that Snakemake makes the artifact and its runs again.

    The artifact's copy in ``results/``, and the files of wanted artifacts that are built from it, are deleted too: Snakemake
    would otherwise take them as up to date. Returns a sentence for the user for each artifact.
    """
    lost = lost_files(suite, targets)
    for name in _wanted(suite, targets) if lost else ():
        if {name, *names_read(suite.artifacts[name], suite.artifacts)} & lost.keys():
            for path in (suite.outputs(name)[0], suite.shown(name)[0]):
                path.unlink(missing_ok=True)
    return [
        f"note: {len(paths)} files of runs are gone that {name} was made from, such as {paths[0]}: they are made again, and {name} after them"
        for name, paths in lost.items()
    ]
