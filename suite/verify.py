"""Whether the files of runs and artifacts are as they were written: ``make verify``."""

import json
from collections.abc import Iterator
from pathlib import Path

from poet.data.files import sha256_of
from poet.launch.records import Altered, altered_weights, check_file, check_record
from poet.system.errors import UserError
from suite.collection import load_suite
from suite.recorded.archive import archive_path, read
from suite.recorded.run import FILES
from suite.sources import altered, note_path, read_note
from suite.targets import lost_files

SCALES = Path("config/scales")


def runs(results: Path) -> Iterator[tuple[Path, str]]:
    """Every run folder, with a sentence on its fault; empty if it has none."""
    for folder in sorted({path.parent for file in FILES for path in (results / "runs").rglob(file)}):
        found = fault(folder, str(folder.relative_to(results / "runs")))
        yield folder, f"{found}: remove {folder}; what needs it makes it again" if found else ""


def fault(folder: Path, name: str) -> str:
    """What differs in a folder from the run of a name as it was written: a clause, or empty if nothing does. A run without its weights is whole, as archives have none."""
    try:
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        check_record(record)
        if record.get("name", name) != name:
            return f"{folder / 'record.json'} is that of the run {record['name']}"
    except FileNotFoundError:
        return f"{folder} has files of a run and no record"
    except Altered as error:
        return f"{folder / 'record.json'} {error}"
    except ValueError:
        return f"{folder / 'record.json'} cannot be read"
    for name in FILES[1:]:
        path = folder / name
        try:
            check_file(record, name, path.read_bytes() if path.exists() else None)
        except Altered as error:
            return f"{path} {error}" if path.exists() else f"{path} is gone"
    other = altered_weights(record, folder / "weights") if (folder / "weights").is_dir() else None
    return f"{other} is not the one that the record was written with" if other else ""


def artifacts(results: Path) -> Iterator[str]:
    """A sentence for each output that was edited since it was made, and for each artifact whose run files were deleted.

    Each artifact is checked with the seeds that it was made with, from its note.
    """
    for scale in sorted(path.stem for path in SCALES.glob("*.yaml") if (results / path.stem).is_dir()):
        try:
            plain = load_suite({"scale": scale, "seeds": [0]})
        except UserError as error:  # such as a trial's record that cannot be read
            yield str(error)
            continue
        suites = {(0,): plain}
        notes = {name: read_note(note_path(results / scale, name)) for name in plain.artifacts}
        for name, note in notes.items():
            if note:
                seeds = tuple(note["seeds"])
                try:
                    suite = suites.get(seeds) or suites.setdefault(seeds, load_suite({"scale": scale, "seeds": note["seeds"]}))
                except UserError as error:  # seeds that the scale no longer takes
                    yield f"{note_path(results / scale, name)}: {error}"
                    continue
                command = f"make {suite.shown(name)[0]} SCALE={scale} SEEDS='{json.dumps(note['seeds'], separators=(',', ':'))}'"
                for path in altered(results / scale, name):
                    yield f"{path} is not as it was made: remove it, and make it again with `{command}`"
                for lost in lost_files(suite, [name]).get(name, [])[:1]:
                    yield f"{lost} is gone, which {suite.outputs(name)[0]} was made from: make both again with `{command}`"


def copies(results: Path) -> Iterator[str]:
    """A sentence for each file of ``results/`` itself that is no copy of a scale's file, as the notes of these have it."""
    made: dict[Path, set[str]] = {}
    for note in filter(None, map(read_note, results.glob("*/sources/*.json"))):
        for output, digest in note.get("outputs", {}).items():
            made.setdefault(results / output, set()).add(digest)
    for path, digests in made.items():
        if path.exists() and sha256_of(path) not in digests:
            yield f"{path} is no copy of a scale's file: remove it, and ask for it again"


def verify(results: Path) -> tuple[str, list[str]]:
    """Check all that is kept: runs and artifacts of a results folder, and every archive of recorded runs.

    Returns:
        A summary line, and a sentence for each fault.
    """
    found = list(runs(results))
    errors = [fault for _, fault in found if fault] + list(artifacts(results)) + list(copies(results))
    recorded = [path for scale in SCALES.glob("*.yaml") if (path := archive_path(scale.stem)).exists()]
    for path in recorded:
        try:
            read(path)
        except UserError as error:
            errors.append(str(error))
    wrong = f"{len(errors)} are not whole" if errors else "each whole"
    return f"{len(found)} runs in {results / 'runs'}, {len(recorded)} archives of recorded runs: {wrong}", errors
