"""Digests of source files: what an artifact is made by."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from poet.data.files import read_json, sha256_of
from poet.launch.sources import digest, file_digests, imported_files
from poet.system.files import write_text
from suite.artifact import EVERY
from suite.discovery import find, locate, read_by
from suite.scale import ROOT

#: Files that belong to the artifact in whose folder they lie.
ASSETS = (".html", ".css", ".js")


def artifact_sources(name: str, root: Path = ROOT) -> str:
    """Digest of :func:`artifact_files`."""
    return digest(artifact_files(name, root), root)


def artifact_files(name: str, root: Path = ROOT) -> set[Path]:
    """The files that an artifact is remade for when one changes.

    Its own file with whatever that imports of ``analyses/`` and ``suite/``, directly or by way of others; and of ``poet/``, where it has no
    runs, which would be trained again. One that is built from other artifacts depends on theirs too: their claims stand there. Beside the code: templates, styles and scripts in
    the folder that bears its name, the published numbers, and for what is built from all others the recorded ladders.

    Args:
        name: of the artifact.
        root: of the repository, or of a copy.
    """
    places = locate(root)
    own = find(name)
    code = {path for other, artifact in {name: own, **read_by(own)}.items() for path in _closure(places[other], root, artifact.computes)}
    folder = places[name].parent
    assets = {path for path in folder.rglob("*") if folder.name == name and path.suffix in ASSETS}
    # Tables count parameters at paper scale, whichever scale they are made at.
    # Rates of shorter and longer runs follow the protocol of tuning.
    settings = {root / "config" / "scales" / "paper.yaml", root / "config" / "tuning.yaml"}
    ladders = set((root / "analyses" / "recorded").glob("*/ladder.csv")) if EVERY in own.reads else set()
    return code | assets | settings | ladders | {*(root / "analyses" / "published").glob("*.csv")}


def sources_note(folder: Path, name: str) -> Path:
    """Where an artifact in a scale's folder says what it was built with."""
    return folder / "sources" / f"{name}.json"


def note_sources(path: Path, files: Iterable[Path], outputs: Iterable[Path] = (), **parameters: Any) -> None:
    """Note which files, as they are now, and which parameters something was made with: what is made again can then say why.

    Args:
        path: of the note.
        files: what it was made by.
        outputs: what was made, in the folder that the note's own folder is in; see :func:`altered`.

    Raises:
        DiskError: the note cannot be written.
    """
    made = {str(output.relative_to(path.parents[1])): sha256_of(output) for output in outputs}
    write_text(path, json.dumps({**parameters, "outputs": made, "files": file_digests(files)}, indent=1) + "\n")


def altered(folder: Path, name: str) -> list[Path]:
    """The files of an artifact in a scale's folder that are there, and are not as its note says that they were made."""
    made = (noted_sources(sources_note(folder, name)) or {}).get("outputs", {})
    return [folder / output for output, digest in made.items() if (folder / output).exists() and sha256_of(folder / output) != digest]


def noted_sources(path: Path) -> dict[str, Any] | None:
    """A note; None where there is none that can be read."""
    note = read_json(path)
    return note if note and isinstance(note.get("files"), dict) else None


def _closure(path: Path, root: Path, core: bool) -> set[Path]:
    """A file, and every one of ``analyses/`` and ``suite/`` that it imports, directly or by way of others; with ``core`` those of ``poet/``, too, that
    what lies in ``analyses/`` computes with."""

    def followed(source: Path, other: Path) -> bool:
        return other.relative_to(root).parts[0] != "poet" or (core and source.relative_to(root).parts[0] != "suite")

    found, waiting = set(), {path}
    while waiting:
        found |= waiting
        waiting = {other for path in waiting for other in imported_files(path.read_bytes(), root, ".".join(path.relative_to(root).parent.parts)) if followed(path, other)} - found
    return found
