"""What the numbers of a run depend on beside its spec and its data. Where one of these files changes, it is trained again.

Everything else in ``poet/`` starts runs, watches them and keeps their files: it changes no number, and retrains nobody.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from poet.data.corpora import CORPORA
from poet.methods import METHODS

ROOT = Path(__file__).resolve().parents[2]
#: Of every run: the core, the numerics of training, the rows that it reads, and the pinned versions of packages. The
#: kernels' ``__init__`` says on which devices they serve.
ALL = ("poet/*.py", "poet/primitives/*.py", "poet/kernels/__init__.py", "poet/training/*.py", "poet/data/rows.py", "poet/data/order.py", "requirements.lock")
#: Of a run on a GPU.
GPU = ("poet/kernels/*.py",)


def training_sources(method: str, device: str, root: Path = ROOT) -> list[Path]:
    """The files that the numbers of a method's runs depend on.

    Of ``poet/methods`` these are the method's own file, and those that define no method: adding one retrains nobody else.

    Args:
        method: key in ``poet.methods``.
        device: "cpu" or "cuda", where it trains.
        root: of the repository, or of a copy.
    """
    others = {_file(m).name for name, m in METHODS.items() if name != method}
    found = {path for pattern in (*ALL, *(GPU if device == "cuda" else ())) for path in root.glob(pattern)}
    return sorted(found | {path for path in root.glob("poet/methods/*.py") if path.name not in others})


def digest(files: Iterable[Path], root: Path = ROOT) -> str:
    """sha256 over names and contents, whatever the files' dates."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def file_digests(files: Iterable[Path], root: Path = ROOT) -> dict[str, str]:
    """The start of each file's sha256 by its name: a digest over all says that something changed, these say what."""
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in sorted(files)}


@functools.cache
def training_digest(method: str, device: str) -> str:
    """:func:`digest` of :func:`training_sources`."""
    return digest(training_sources(method, device))


def data_sources(corpus: str | None = None) -> list[Path]:
    """The files that the prepared data depends on; what reads the rows is part of training.

    Args:
        corpus: key in ``poet.data.corpora``: files of other corpora do not count. None: all of them count.
    """
    others = {_file(c) for name, c in CORPORA.items() if corpus not in (None, name)}
    read = {ROOT / "poet" / "data" / name for name in ("rows.py", "order.py")}
    return sorted(set((ROOT / "poet" / "data").rglob("*.py")) - others - read)


@functools.cache
def data_digest(corpus: str | None = None) -> str:
    """:func:`digest` of :func:`data_sources`."""
    return digest(data_sources(corpus))


def _file(plugin: type) -> Path:
    return Path(sys.modules[plugin.__module__].__file__).resolve()
