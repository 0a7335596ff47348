"""Which runs a changed file trains again."""

import shutil

import pytest

from poet.launch.sources import ROOT, data_digest, digest, training_sources
from poet.methods import METHODS

RUNS = [(method, device) for method in ("adamw", "poet", "muon") for device in ("cpu", "cuda")]
ALL = {f"{method} on {device}" for method, device in RUNS}
NOBODY = set()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "poet", root / "poet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", root)
    return root


def digests(root):
    return {f"{m} on {d}": digest(training_sources(m, d, root), root) for m, d in RUNS}


def expected(path):
    """Stated by folder, so that a new file has to be thought about only where it is an exception."""
    folder, name = path.parts[1:-1], path.name
    if not folder or folder == ("primitives",) or folder == ("training",):
        return ALL
    if folder == ("kernels",):
        return ALL if name == "__init__.py" else {run for run in ALL if run.endswith("cuda")}
    if folder == ("methods",):
        owners = {method for method, cls in METHODS.items() if cls.__module__ == f"poet.methods.{path.stem}"}
        return {f"{m} on {d}" for m, d in RUNS if m in owners} if owners else ALL
    if folder[:1] == ("data",):
        return ALL if name in ("rows.py", "order.py") else NOBODY  # the others make the data, which has a digest of its own
    assert folder in (("launch",), ("system",)), f"{path}: say here which runs it trains again"
    return NOBODY


@pytest.mark.parametrize("name", sorted(str(path.relative_to(ROOT)) for path in (ROOT / "poet").rglob("*.py")))
def test_a_changed_line_trains_again_whose_numbers_depend_on_it(copy, name):
    path, before = copy / name, digests(copy)
    text = path.read_text()
    path.write_text(text + "\n# another line\n")
    try:
        changed = {run for run, value in digests(copy).items() if value != before[run]}
    finally:
        path.write_text(text)
    assert changed == expected(path.relative_to(copy))


def test_pinned_versions_count(copy):
    before = digests(copy)
    (copy / "requirements.lock").write_text("torch==0\n")
    assert all(before[run] != value for run, value in digests(copy).items())


def test_training_imports_nothing_that_retrains_nobody():
    """What a number depends on cannot lie in ``poet.launch``: training does not know it."""
    from tests.test_boundaries import breaches

    core = [path for path in training_sources("poet", "cuda") if path.suffix == ".py"]
    assert not breaches(core, ("poet.launch",))


def test_a_corpus_s_own_file_counts_for_its_data_alone():
    assert len({data_digest("c4"), data_digest("enwik8"), data_digest()}) == 3
