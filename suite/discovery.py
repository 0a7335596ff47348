"""Where artifacts lie: a table or figure is recognised by its place, and no other file is imported to find it."""

from __future__ import annotations

import importlib
from pathlib import Path

from suite.artifact import EVERY, Artifact, names_read
from suite.scale import ROOT

#: Folders of ``analyses/`` in which every file is an artifact.
COLLECTIONS = ("tables", "figures")


def locate(root: Path = ROOT) -> dict[str, Path]:
    """Every artifact's own file by its name, Figure 2 before Figure 10.

    These are the files in :data:`COLLECTIONS` and, in any other folder of ``analyses/``, the file that bears the folder's
    name: ``analyses/tables/table3.py``, ``analyses/tables/table2/table2.py`` and ``analyses/errata/errata.py``.

    Args:
        root: of the repository, or of a copy.

    Raises:
        ValueError: two files have one name.
    """
    folder = root / "analyses"
    files = [path for name in COLLECTIONS for path in (folder / name).glob("*.py")]
    files += [path for path in folder.rglob("*.py") if path.stem == path.parent.name]
    found = {path.stem: path for path in files}
    for path in files:
        if found[path.stem] != path:
            raise ValueError(f"{path.relative_to(root)} and {found[path.stem].relative_to(root)} are both the artifact {path.stem}: rename one")
    return dict(sorted(found.items(), key=lambda item: _natural(item[0])))


def _natural(name: str) -> tuple[str, int]:
    word = name.rstrip("0123456789")
    return word, int(name[len(word) :] or 0)


def find(name: str) -> Artifact:
    """An artifact by its name; only its own file and what that imports are loaded.

    Raises:
        KeyError: there is no such artifact.
    """
    return _load(locate()[name])


def discover() -> dict[str, Artifact]:
    """Every artifact by its name, Figure 2 before Figure 10."""
    return {name: _load(path) for name, path in locate().items()}


def read_by(artifact: Artifact) -> dict[str, Artifact]:
    """The artifacts that one is built from, by name; where it names them, no others are loaded."""
    found = discover() if EVERY in artifact.reads else {name: find(name) for name in artifact.reads}
    return {name: found[name] for name in names_read(artifact, found)}


def _load(path: Path) -> Artifact:
    return importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)).ARTIFACT
