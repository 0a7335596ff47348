"""Finding artifacts: a table or figure is recognised by the place of its file, without importing other files."""

import importlib
from pathlib import Path
from typing import get_args

from poet.system.validation import ConfigError
from suite.artifact import EVERY, Artifact, names_read
from suite.claim import Claim, Kind
from suite.scale import ROOT

#: Folders of ``analyses/`` in which every file is an artifact.
COLLECTIONS = ("tables", "figures")


def locate(root: Path = ROOT) -> dict[str, Path]:
    """The file of every artifact, by the artifact's name; Figure 2 comes before Figure 10.

    These are the files in :data:`COLLECTIONS` and, in any other folder of ``analyses/``, the file that bears the folder's
    name: ``analyses/tables/table3.py``, ``analyses/tables/table2/table2.py`` and ``analyses/errata/errata.py``.

    Raises:
        ConfigError: two files have one name.
    """
    folder = root / "analyses"
    files = [path for name in COLLECTIONS for path in (folder / name).glob("*.py")]
    files += [path for path in folder.rglob("*.py") if path.stem == path.parent.name]
    found = {path.stem: path for path in files}
    for path in files:
        if found[path.stem] != path:
            raise ConfigError(f"{path.relative_to(root)} and {found[path.stem].relative_to(root)} are both the artifact {path.stem}: rename one")
    return dict(sorted(found.items(), key=lambda item: _natural(item[0])))


def _natural(name: str) -> tuple[str, int]:
    word = name.rstrip("0123456789")
    return word, int(name[len(word) :] or 0)


def find(name: str) -> Artifact:
    """The artifact of a name. Only its own file and the files that this imports are loaded.

    Raises:
        KeyError: there is no such artifact.
    """
    return _load(locate()[name])


def discover() -> dict[str, Artifact]:
    """Every artifact by its name; Figure 2 comes before Figure 10.

    Raises:
        ConfigError: a file declares no artifact, or an invalid one; the message names the file.
    """
    places = locate()
    found = {name: _load(path) for name, path in places.items()}
    for name, artifact in found.items():
        if unknown := [read for read in artifact.reads if (read not in found or read == name) and read != EVERY]:
            raise ConfigError(f"{places[name].relative_to(ROOT)}: reads names {unknown[0]!r}, and there is no such artifact beside it")
    return found


def read_by(artifact: Artifact) -> dict[str, Artifact]:
    """The artifacts that an artifact is built from, by name. All artifacts are loaded only if it reads :data:`EVERY`."""
    found = discover() if EVERY in artifact.reads else {name: find(name) for name in artifact.reads}
    return {name: found[name] for name in names_read(artifact, found)}


def _load(path: Path) -> Artifact:
    own = path.relative_to(ROOT)
    artifact = getattr(importlib.import_module(".".join(own.with_suffix("").parts)), "ARTIFACT", None)
    if said := _wrong(path.stem, artifact):
        raise ConfigError(f"{own}: {said}")
    return artifact


def _wrong(name: str, artifact: object) -> str:
    """A sentence on what is wrong with the artifact that a file declares; empty if nothing is."""
    if not isinstance(artifact, Artifact):
        return "it defines no ARTIFACT, an Artifact of suite.artifact: define it, or move what several files share to analyses/common"
    for field, kind, example in (("outputs", str, f"'{name}.csv'"), ("models", str, "'60m'"), ("reads", str, "'table2'"), ("claims", Claim, "CLAIM")):
        value = getattr(artifact, field)
        if not isinstance(value, tuple) or not all(isinstance(one, kind) for one in value):
            return f"{field} is a tuple such as ({example},); got {value!r:.80}"
    if not artifact.outputs or Path(artifact.outputs[0]).stem != name:
        return f"the first of its outputs bears the file's name, such as '{name}.csv'; got {artifact.outputs!r:.80}"
    keys = [claim.key for claim in artifact.claims]
    if wrong := [key for key in keys if not key.startswith(f"{name}-") or keys.count(key) > 1]:
        return f"claim keys begin with the file's name, and none is there twice: '{name}-first'; got {wrong[0]!r}"
    for claim in artifact.claims:
        if claim.kind not in get_args(Kind):
            return f"claim {claim.key} is of kind {claim.kind!r}; known are {', '.join(get_args(Kind))}"
    return ""
