"""What an artifact is remade for: its own files and those that it imports, and no other's."""

import pytest

from poet.system.validation import ConfigError
from suite.discovery import discover, locate
from poet.launch.sources import digest
from suite.sources import artifact_files

ALL = frozenset(discover())
#: What is built from other artifacts.
GATHERED = {"claims", "report"}
SPECTRA = {f"figure{n}" for n in (1, 6, 7, *range(17, 23))}
COMPUTED = {name for name, artifact in discover().items() if artifact.computes}
CONFIGURATION = {"table8", "table9", "table10"}


@pytest.fixture(scope="module")
def before():
    return {name: digest(artifact_files(name)) for name in ALL}


@pytest.mark.parametrize(
    ("changed", "remade"),
    [
        ("analyses/figures/figure2/figure2.py", {"figure2", *GATHERED}),
        ("analyses/tables/table5.py", {"table5", *GATHERED}),
        ("analyses/ladder/orders.py", {"ladder", "report"}),
        ("analyses/tables/lr_sweep.py", {"lr_sweep"}),  # not in "all", which others are built from
        ("analyses/tables/claims.py", GATHERED),
        ("analyses/figures/common/spectra.py", {*SPECTRA, *GATHERED}),
        ("analyses/tables/common/config_tables.py", {*CONFIGURATION, *GATHERED}),
        ("analyses/tables/table1/memory_formulas.py", {"table1", "errata", *GATHERED}),
        ("analyses/report/style.css", {"report"}),
        ("analyses/report/templates/page.html", {"report"}),
        ("analyses/published/table2.csv", ALL),
        ("analyses/recorded/night/ladder.csv", GATHERED),
        ("config/scales/paper.yaml", ALL),
        ("config/tuning.yaml", ALL),
        ("suite/claim.py", ALL),
        ("poet/orthogonal.py", {*COMPUTED, *GATHERED}),  # what has runs is built again after them
        ("poet/launch/operations.py", {"table1", "figure5", "controls", *GATHERED}),  # no run depends on it
        ("poet/training/run.py", set()),  # the runs are trained again
        ("poet/launch/loop.py", set()),
        ("suite/check/findings.py", set()),
    ],
)
def test_what_a_changed_file_remakes(repository, monkeypatch, before, changed, remade):
    path, read = repository / changed, type(repository).read_bytes
    assert path.exists()
    more = b"\nanother = 'line'\n" if path.suffix == ".py" else b"\n#"
    monkeypatch.setattr(type(repository), "read_bytes", lambda p: read(p) + more * (p == path))
    assert {name for name in ALL if digest(artifact_files(name)) != before[name]} == remade


def test_an_import_in_a_function_counts_and_so_does_that_of_a_module_that_imports_it_in_turn(tmp_path):
    sources = {
        "analyses/tables/table2/table2.py": "def build(context):\n    from analyses.common import one",
        "analyses/common/one.py": "import suite.two",
        "analyses/common/other.py": "",
        "suite/__init__.py": "",
        "suite/two.py": "from suite.three import something\nfrom poet.model import apply_poet",
        "suite/three.py": "from suite import two",
        "poet/model.py": "",
        "config/scales/paper.yaml": "",
        "config/tuning.yaml": "",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {str(path.relative_to(tmp_path)) for path in artifact_files("table2", tmp_path)}
    assert found == set(sources) - {"analyses/common/other.py", "poet/model.py"}


def test_an_artifact_is_found_by_where_it_lies_alone(tmp_path):
    for name in ("tables/table10", "tables/table9", "tables/table2/table2", "tables/table2/claims", "tables/common/cells", "errata/errata", "errata/counts", "common/grid", "phases"):
        path = tmp_path / "analyses" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise RuntimeError('nobody has to import this')")
    assert list(locate(tmp_path)) == ["errata", "table2", "table9", "table10"]
    (tmp_path / "analyses" / "tables" / "errata.py").write_text("")
    with pytest.raises(ConfigError, match="errata.py are both the artifact errata: rename one"):
        locate(tmp_path)
