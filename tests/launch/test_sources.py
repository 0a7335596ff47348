"""Which runs a changed file trains again."""

import ast
import shutil
import sys
import types
from pathlib import Path

import pytest

from poet.data.corpora import CORPORA
from poet.launch.sources import ROOT, data_digest, data_sources, digest, file_digests, training_sources
from poet.methods import METHODS, Method

RUNS = [(method, device) for method in ("adamw", "poet", "muon", "galore-two-rates") for device in ("cpu", "cuda")]
ALL = {f"{method} on {device}" for method, device in RUNS}
NOBODY = set()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "poet", root / "poet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", root)
    return root


@pytest.fixture(scope="module")
def sound(copy):
    return digests(copy)


def digests(root):
    return {f"{m} on {d}": digest(training_sources(m, d, root), root) for m, d in RUNS}


def test_digests_of_single_files_name_the_one_that_changed(copy):
    before = file_digests(training_sources("adamw", "cpu", copy), copy)
    (copy / "poet" / "optim.py").write_bytes((whole := (copy / "poet" / "optim.py").read_bytes()) + b"another = 1\n")
    after = file_digests(training_sources("adamw", "cpu", copy), copy)
    (copy / "poet" / "optim.py").write_bytes(whole)
    assert [name for name in after if after[name] != before[name]] == ["poet/optim.py"] and after.keys() == before.keys()


def expected(path):
    """Stated by folder, so that a new file has to be thought about only where it is an exception."""
    folder, name = path.parts[1:-1], path.name
    if path == Path("poet/checks.py"):
        return NOBODY  # what refuses changes no number
    if not folder or folder == ("primitives",) or folder == ("training",):
        return ALL
    if folder == ("kernels",):
        return ALL if name == "__init__.py" else {run for run in ALL if run.endswith("cuda")}
    if folder == ("methods",):
        defined = [cls for cls in METHODS.values() if cls.__module__ == f"poet.methods.{path.stem}"]
        owners = {method for method, cls in METHODS.items() if issubclass(cls, tuple(defined))}  # and of what extends it
        return {f"{m} on {d}" for m, d in RUNS if m in owners} if owners else ALL
    if folder[:1] == ("data",):
        return ALL if name in ("rows.py", "order.py") else NOBODY  # the others make the data, which has a digest of its own
    if folder[:1] == ("finetuning",):
        return NOBODY  # these are runs of pretraining
    assert folder in (("launch",), ("system",), ("integrations",)), f"{path}: say here which runs it trains again"
    return NOBODY


def test_a_changed_line_trains_again_whose_numbers_depend_on_it(copy, sound):
    wrong = {}
    for path in sorted((copy / "poet").rglob("*.py")):
        text = path.read_text()
        path.write_text(text + "\nanother = 'line'\n")
        try:
            changed = {run for run, value in digests(copy).items() if value != sound[run]}
        finally:
            path.write_text(text)
        name = path.relative_to(copy)
        if changed != expected(name):
            wrong[str(name)] = changed ^ expected(name)
    assert not wrong


@pytest.mark.parametrize("line", ["from poet.methods.galore import GaLoreAdamW", "from .galore import GaLoreAdamW", "from . import galore", "import poet.methods.galore"])
def test_a_method_depends_on_the_file_of_another_that_it_imports_from(tmp_path, monkeypatch, line):
    (tmp_path / "mine.py").write_text(f"{line}\n")
    monkeypatch.setitem(sys.modules, "mine", types.SimpleNamespace(__file__=str(tmp_path / "mine.py")))
    monkeypatch.setitem(METHODS, "mine", type("Mine", (Method,), {"__module__": "mine"}))
    assert {path.name for path in training_sources("mine", "cpu")} & {"galore.py", "muon.py"} == {"galore.py"}


def test_words_train_nobody_again(copy):
    path, before = copy / "poet" / "transform.py", digests(copy)
    text = path.read_text()
    assert '"""W_RP (n, m)' in text
    try:
        path.write_text(text.replace('"""W_RP (n, m)', '"""The weight (n, m)') + "\n# another comment\n")
        assert digests(copy) == before
    finally:
        path.write_text(text)


CALL = "        check_wrapped(self.model)\n"
@pytest.mark.parametrize(
    ("instead", "changes"),
    [
        ("", False),
        ("        check_wrapped(self.model.part)\n", False),
        ("        check_wrapped(self.model.zero_grad())\n", True),  # what stands in it may compute
        ("        check_wrapped(model=self.model)\n", True),
        ("        step += check_wrapped(self.model)\n", True),
        ("        merge_and_reinitialize(self.model)\n", True),
        (f"        check_wrapped = print\n{CALL}", True),  # another function of that name
        (f"        from torch import compile as check_wrapped\n{CALL}", True),
        (f"        def check_wrapped(model): model.zero_grad()\n{CALL}", True),
    ],
)
def test_a_check_trains_nobody_again_and_what_only_looks_like_one_does(copy, sound, instead, changes):
    path = copy / "poet" / "optim.py"
    text = path.read_text()
    assert text.count(CALL) == 1
    try:
        path.write_text(text.replace(CALL, instead))
        assert all((sound[run] != value) == changes for run, value in digests(copy).items())
    finally:
        path.write_text(text)


def test_a_check_can_do_nothing_but_refuse_and_warn():
    """No digest has them, so each statement is "if ...: raise" or a warning, and what the conditions call changes nothing.

    A private function returns one expression under the same rule.
    """
    harmless = {
        "isinstance", "type", "any", "getattr", "hasattr", "id", "vars", "modules", "named_modules", "get", "values", "get_output_embeddings",
        "detach", "len", "set", "_real", "_factors", "_layers", "_optimized", "_written", "warn",
    }  # fmt: skip
    functions = [node for node in ast.parse((ROOT / "poet" / "checks.py").read_text()).body if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        for statement in function.body[1:]:
            if function.name.startswith("_"):
                assert isinstance(statement, ast.Return)
                read = statement.value
            else:
                assert isinstance(statement, ast.If) and not statement.orelse
                (line,), read = statement.body, statement.test
                assert isinstance(line, ast.Raise) or ast.unparse(line).startswith("_warn(")
            calls = [node.func for node in ast.walk(read) if isinstance(node, ast.Call)]
            assert {call.attr if isinstance(call, ast.Attribute) else call.id for call in calls} <= harmless, function.name


@pytest.mark.parametrize(("line", "changes"), [("torch==0", True), ("transformers==0", True), ("scipy==0", False), ("seaborn==0", False)])
def test_pinned_versions_of_what_computes_count(copy, line, changes):
    lock, before = copy / "requirements.lock", digests(copy)
    text = lock.read_text()
    name = line.split("==")[0]
    try:
        lock.write_text("\n".join(line if old.startswith(f"{name}==") else old for old in text.splitlines()))
        assert all((before[run] != value) == changes for run, value in digests(copy).items())
    finally:
        lock.write_text(text)


def test_training_imports_nothing_that_retrains_nobody():
    """What a number depends on cannot lie in ``poet.launch``: training does not know it."""
    from tests.test_boundaries import breaches

    core = [path for path in training_sources("poet", "cuda") if path.suffix == ".py"]
    assert not breaches(core, ("poet.launch",))


def test_data_depend_on_what_makes_them_and_on_their_own_corpus_alone():
    left_out = {"rows.py", "order.py", "__main__.py", "estimate.py", "rate.py"}
    files = {str(path.relative_to(ROOT / "poet" / "data")) for path in (ROOT / "poet" / "data").rglob("*.py")}
    corpora = {f"corpora/{name}.py" for name in CORPORA}
    found = {str(path.relative_to(ROOT / "poet" / "data")) for path in data_sources("enwik8")}
    assert corpora | left_out < files and found == files - left_out - corpora | {"corpora/enwik8.py"}
    assert data_digest("c4") != data_digest("enwik8") == digest(data_sources("enwik8"))
