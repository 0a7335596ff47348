"""The source files that an artifact depends on, and their digests."""

import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from poet.data.files import read_json, sha256_of
from poet.launch.sources import ALL, GPU, file_digests, imported_files
from poet.system.files import write_text
from suite.artifact import EVERY
from suite.discovery import find, locate, read_by
from suite.scale import ROOT

#: Suffixes of files that belong to the artifact whose folder they lie in.
ASSETS = (".html", ".css", ".js")


def artifact_files(name: str, root: Path = ROOT) -> set[Path]:
    """The source files of an artifact: it is made again when one of them changes.

    - Its own file, and the files that this imports from ``analyses/`` and ``suite/``, directly or indirectly, and what these files of ``analyses/`` import
      from ``poet/``. For an artifact with runs the files that runs depend on are left out: a change of those trains its runs again.
    - The source files of the artifacts that it is built from: these files also have their claims.
    - Templates, styles and scripts in the folder of its name, the published numbers, ``paper.yaml`` and ``tuning.yaml``.
    - The recorded ladders, for an artifact that is built from all others.
    """
    places = locate(root)
    own = find(name)
    code = {path for other, artifact in {name: own, **read_by(own)}.items() for path in _closure(places[other], root, artifact.computes)}
    folder = places[name].parent
    assets = {path for path in folder.rglob("*") if folder.name == name and path.suffix in ASSETS}
    # paper.yaml: tables of every scale count parameters at paper scale.
    # tuning.yaml: the rates of shorter and longer runs follow the protocol of tuning.
    settings = {root / "config" / "scales" / "paper.yaml", root / "config" / "tuning.yaml"}
    ladders = set((root / "analyses" / "recorded").glob("*/ladder.csv")) if EVERY in own.reads else set()
    return code | assets | settings | ladders | {*(root / "analyses" / "published").glob("*.csv")}


def note_path(folder: Path, name: str) -> Path:
    """The path of an artifact's note of source digests, in a scale's folder."""
    return folder / "sources" / f"{name}.json"


def write_note(path: Path, files: Iterable[Path], outputs: Iterable[Path] = (), **parameters: Any) -> None:
    """Write a note with the digests of source files and of the outputs made from them. ``why`` compares it with today's files.

    Args:
        outputs: the files that were made, in the folder above the note's own; see :func:`altered`.
        parameters: further values of the note, such as seeds.

    Raises:
        DiskError: the note cannot be written.
    """
    made = {str(output.relative_to(path.parents[1])): sha256_of(output) for output in outputs}
    write_text(path, json.dumps({**parameters, "outputs": made, "files": file_digests(files)}, indent=1) + "\n")


def altered(folder: Path, name: str) -> list[Path]:
    """The files of an artifact that were edited after they were made, by the digests in its note."""
    made = (read_note(note_path(folder, name)) or {}).get("outputs", {})
    return [folder / output for output, digest in made.items() if (folder / output).exists() and sha256_of(folder / output) != digest]


def read_note(path: Path) -> dict[str, Any] | None:
    """A note of source digests; None if it is missing or unreadable."""
    note = read_json(path)
    return note if note and isinstance(note.get("files"), dict) else None


@functools.cache
def _files(root: Path, *patterns: str) -> frozenset[Path]:
    """The files of the patterns below a root."""
    return frozenset(path for pattern in patterns for path in root.glob(pattern))


def _closure(path: Path, root: Path, core: bool) -> set[Path]:
    """A file and all it imports from ``analyses/`` and ``suite/``, directly or indirectly, and what files of ``analyses/`` import from ``poet/``; without
    ``core`` only the files that no run depends on."""
    trained = frozenset() if core else _files(root, *ALL, *GPU, "poet/methods/*.py")
    found, waiting = set(), {path}
    while waiting:
        found |= waiting
        imported = set()
        for source in waiting:
            folders = source.relative_to(root).parent.parts
            imported |= imported_files(source.read_bytes(), root, ".".join(folders)) - (_files(root, "poet/**/*.py") if folders[0] == "suite" else trained)
        waiting = imported - found
    return found
