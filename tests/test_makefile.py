"""What the Makefile says by itself: a target is refused in a sentence, whatever lies beside it."""

import os
import re
import shutil
import subprocess

import pytest


@pytest.fixture
def make(repository, tmp_path):
    """``make(words)``: what a call in a folder with the Makefile alone says, and its exit status."""
    shutil.copy(repository / "Makefile", tmp_path)
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}  # `make test` itself sets these

    def _make(*words):
        done = subprocess.run(["make", *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, env=alone)
        return done.stdout + done.stderr, done.returncode

    return _make


def install(folder):
    """An environment that looks installed and has nothing."""
    for name in ("requirements.lock", "constraints-cuda.txt", ".venv/installed"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()


@pytest.mark.parametrize("source", ["thing.c", "thing.sh", "thing.o"])
def test_no_rule_of_make_s_own_takes_an_unknown_target(make, tmp_path, source):
    """make would compile thing.c, link thing.o and copy thing.sh."""
    (tmp_path / source).touch()
    said, code = make("thing")
    assert said.splitlines()[0] == "error: there is no target thing: make help says which there are" and code == 2
    assert not (tmp_path / "thing").exists()


def test_a_folder_s_name_is_no_target(make, tmp_path):
    for folder in ("tests", "a:b", "x%y"):
        (tmp_path / folder).mkdir()
    for name in ("tests", "tests/"):
        said, code = make(name)
        assert said.splitlines()[0] == f"error: there is no target {name}: make help says which there are" and code == 2


def test_recorded_runs_are_refused_where_nothing_would_read_them(make, tmp_path):
    install(tmp_path)
    said, code = make("results/table2.csv", "RECORDED=1")
    assert "error: RECORDED=1 does nothing for results/table2.csv: give it to report, docs or record" in said and code == 2
    assert make("-n", "report", "RECORDED=1")[1] == make("-n", "results/table2.csv", "RECORDED=0")[1] == 0


@pytest.mark.parametrize("words", [("compare",), ("compare", "A=results/mini"), ("compare", "B=results/mini")])
def test_compare_says_what_it_needs(make, tmp_path, words):
    install(tmp_path)
    said, code = make(*words)
    assert said.startswith("error: compare needs two results folders or two tables: call make compare A=") and code == 2


@pytest.mark.parametrize("word", ["scale=night", "SEED=[0,1]"])
def test_an_option_that_there_is_not_is_refused(make, word):
    said, code = make("status", word)
    assert f"error: there is no option {word.partition('=')[0]}: options are PYTHON SCALE SEEDS" in said and code == 2


def test_every_option_that_is_read_may_be_given(repository):
    text = (repository / "Makefile").read_text()
    options = re.search(r"^OPTIONS := (.*)$", text, re.MULTILINE)[1].split()
    assert set(options) == set(re.findall(r"\$\(([A-Z]+)\)", text)) - {"CURDIR", "MAKECMDGOALS", "OPTIONS", "UNKNOWN", "ELSEWHERE", "TARGETS", "PLAIN", "FOLDERS"}


def test_a_python_that_there_is_not_is_named(make, tmp_path):
    install(tmp_path)
    (tmp_path / ".venv" / "installed").unlink()
    said, code = make("test", "PYTHON=python3.99")
    assert said.startswith("error: there is no python3.99: install Python 3.11 or newer") and code == 2
