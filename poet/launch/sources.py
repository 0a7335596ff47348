"""The source files that a run's numbers depend on, beside its spec and data. If one changes, the run is trained again.

The other files of ``poet/`` prepare data, finetune, work with other libraries, or start and watch runs: a change of those trains no run again.
"""

import ast
import functools
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from poet.data.corpora import CORPORA
from poet.methods import METHODS

ROOT = Path(__file__).resolve().parents[2]
#: Sources of every run: the core, the numerics of training, the reading of rows, and the pinned versions of :data:`PACKAGES`.
#: ``poet/kernels/__init__.py`` decides on which devices kernels are used.
ALL = ("poet/*.py", "poet/primitives/*.py", "poet/kernels/__init__.py", "poet/training/*.py", "poet/data/rows.py", "poet/data/order.py", "requirements.lock")
#: The packages that training computes with. The lock's other packages, such as those for plots, change no number.
PACKAGES = ("torch", "triton", "numpy", "transformers", "peft")
#: Checks raise, warn or do nothing: they change no number of a run that was trained.
CHECKS = "poet/checks.py"
#: Further sources of a run on a GPU.
GPU = ("poet/kernels/*.py",)


def training_sources(method: str, device: str, root: Path = ROOT) -> list[Path]:
    """The files that the numbers of a method's runs depend on.

    From ``poet/methods`` these are the method's own file, the files of methods that it extends or imports, and files that define
    no method. So a new method trains no run of another method again.

    Args:
        method: key in ``poet.methods``.
        device: "cpu" or "cuda", where it trains.
        root: of the repository, or of a copy.
    """
    files = {_file(m) for m in METHODS.values()}
    used, waiting = set(), {_file(m) for m in METHODS.values() if issubclass(METHODS[method], m)}
    while waiting:
        used |= waiting
        imported = {other for path in waiting for other in imported_files(path.read_bytes(), ROOT, "poet.methods")}
        waiting = {other for other in imported if other.parent.name == "methods"} - used
    others = {path.name for path in files - used}
    found = {path for pattern in (*ALL, *(GPU if device == "cuda" else ())) for path in root.glob(pattern)}
    found |= {path for path in root.glob("poet/methods/*.py") if path.name not in others}
    return sorted(found - {root / CHECKS})


@functools.cache
def imported_files(source: bytes, root: Path, package: str) -> frozenset[Path]:
    """The files of this project that a Python source imports, anywhere in it, with their packages' own files.

    Args:
        source: of a file.
        root: of the repository, or of a copy.
        package: dotted name of the file's package, for relative imports.
    """
    paths = set()
    for level, name in _read(source)[1]:
        begin = package.split(".")[: 1 - level or None] if level else []
        first, *parts = [*begin, *name.split(".")]
        if first in ("analyses", "suite", "poet"):
            folders = [root.joinpath(first, *parts[:depth]) for depth in range(len(parts) + 1)]
            # The last part may be a name in the module that the part before it names.
            paths |= {folder / "__init__.py" for folder in folders} | {folder.with_suffix(".py") for folder in folders[-2:]}
    return frozenset(path for path in paths if path.is_file())


def digest(files: Iterable[Path], root: Path = ROOT, packages: tuple[str, ...] = PACKAGES) -> str:
    """sha256 over the files' names and code. Comments and docstrings do not count: editing them trains no run again.

    ``packages``: the packages whose versions count, of those in ``requirements.lock``.
    """
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path.relative_to(root)}\0{_substance(path, packages)}\0".encode())
    return total.hexdigest()


def _substance(path: Path, packages: tuple[str, ...]) -> str:
    content = path.read_bytes()
    if path.name == "requirements.lock":
        return "\n".join(line for line in content.decode().splitlines() if re.match(rf"({'|'.join(packages)})==", line))
    return _read(content)[0] if path.suffix == ".py" else hashlib.sha256(content).hexdigest()


@functools.cache
def _read(source: bytes) -> tuple[str, set[tuple[int, str]]]:
    """A Python source without docstrings, comments and calls of :data:`CHECKS`, and each name that it imports, with its number of leading dots.

    One cached function for both: many digests share a file, and parsing is slow.
    """
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names = {(0, alias.name) for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {(node.level, f"{node.module}.{alias.name}" if node.module else alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == CHECKS.removesuffix(".py").replace("/", ".")]
    checks = {alias.name for node in imports for alias in node.names if alias.asname is None}
    checks -= set(_bound(tree, but=imports)) if checks else set()  # a name that the file also binds otherwise may be no check
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body if ast.get_docstring(node) is None else node.body[1:]
            node.body = [line for line in body if line not in imports and not _is_check(line, checks)] or [ast.Pass()]
    return ast.unparse(tree), names


def _bound(tree: ast.Module, but: list[ast.ImportFrom]) -> Iterator[str]:
    """Names that a file binds anywhere, except by imports of checks."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and node not in but:
            yield from (alias.asname or alias.name for alias in node.names)


def _is_check(line: ast.stmt, checks: set[str]) -> bool:
    """Whether a statement only calls a check, on names and attributes: such arguments compute nothing."""
    if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and not line.value.keywords):
        return False
    called, arguments = line.value.func, line.value.args
    plain = all(isinstance(node, (ast.Name, ast.Attribute, ast.Load)) for argument in arguments for node in ast.walk(argument))
    return isinstance(called, ast.Name) and called.id in checks and plain


def file_digests(files: Iterable[Path], root: Path = ROOT, packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """The start of each file's :func:`digest` by file name, to say which file changed."""
    return {str(path.relative_to(root)): digest([path], root, packages)[:12] for path in sorted(files)}


@functools.cache
def training_digest(method: str, device: str) -> str:
    """:func:`digest` of :func:`training_sources`."""
    return digest(training_sources(method, device))


def data_sources(corpus: str) -> list[Path]:
    """The files that a corpus's prepared data depends on: ``poet/data`` without other corpora, reading of rows, estimates and command line."""
    others = {_file(c) for name, c in CORPORA.items() if name != corpus}
    apart = {ROOT / "poet" / "data" / name for name in ("rows.py", "order.py", "__main__.py", "estimate.py", "rate.py")}
    return sorted(set((ROOT / "poet" / "data").rglob("*.py")) - others - apart)


@functools.cache
def data_digest(corpus: str) -> str:
    """:func:`digest` of :func:`data_sources`."""
    return digest(data_sources(corpus))


def _file(plugin: type) -> Path:
    return Path(sys.modules[plugin.__module__].__file__).resolve()
