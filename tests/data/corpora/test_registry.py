"""A corpus is one file; the registry finds it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from poet.data import corpora
from poet.data.corpora import CORPORA
from poet.data.tokenizer import load_bpe
from poet.launch.sources import data_digest, training_digest

#: The example that docs/data.md shows.
FILE = (Path(corpora.__file__).parents[3] / "docs" / "examples" / "files.py").read_text()
DESCRIPTION = {"corpus": "files", "path": "texts", "tokenizer": {"kind": "bpe", "vocab_size": 270}, "sequence_length": 8, "packing": "pack"}
#: What the command refuses, and what it says.
REFUSED = {
    "corpora in shards": {"stream": True, "packing": "pad"},
    "corpus 'enwik8' reads no folder": {"corpus": "enwik8"},
    "finds no text": {"path": "poet"},
}
#: Asked of the copy, in one Python of its own; the commands come first, and import what they need.
QUESTIONS = """
import contextlib, io, json, runpy, sys

def command(folder, description, *options):
    sys.argv = ["poet.data", json.dumps(description), "--folder", folder, "--cache", "cache", *options]
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            runpy.run_module("poet.data", run_name="__main__")
        except SystemExit as end:
            return {"code": end.code, "out": out.getvalue(), "error": error.getvalue()}

description, refused = json.loads(sys.argv[1])
answers = {
    "prepared": command("rows", description),
    "verified": command("rows", description, "--verify"),
    "unknown": command("refused", description | {"corpus": "pile"}),
    "refused": {said: command("refused", description | change) for said, change in refused.items()},
}

from poet.data.estimate import estimate
from poet.data.rows import TrainingBatches
from poet.launch.sources import data_digest, training_digest

answers["batch"] = TrainingBatches("rows", 2, 0).batch(3).shape
answers["estimated"] = estimate(description).rows
answers["digests"] = [data_digest("enwik8"), data_digest("c4"), training_digest("poet", "cpu"), data_digest("files")]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def copy(repository, tmp_path_factory):
    """A copy of the package with one file more, and some texts."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(repository / "poet", root / "poet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(repository / "requirements.lock", root)
    (root / "poet" / "data" / "corpora" / "files.py").write_text(FILE)
    (root / "texts").mkdir()
    for number in range(40):
        (root / "texts" / f"{number:02d}.txt").write_text(f"the number {number} comes after {number - 1}")
    return root


@pytest.fixture(scope="module")
def answers(copy):
    """What the copy said to :data:`QUESTIONS`."""
    command = [sys.executable, "-c", QUESTIONS, json.dumps([DESCRIPTION, REFUSED])]
    done = subprocess.run(command, cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def test_a_new_file_is_a_new_corpus(copy, answers):
    assert answers["prepared"]["code"] == 0, answers["prepared"]["error"]
    meta = json.loads((copy / "rows" / "meta.json").read_text())
    assert meta["corpus"]["name"] == "files" and len(meta["corpus"]["bytes"]) == 40
    text = load_bpe(copy / "rows" / "tokenizer.json").decode(np.load(copy / "rows" / "train.npy").reshape(-1))
    assert text.startswith("the number 1 comes after 0</s>the number 2 ") and "number 10 " not in text
    assert answers["batch"] == [2, 8]
    assert answers["verified"]["out"].startswith("3 files")


def test_its_costs_are_estimated(answers):
    assert answers["estimated"] == round(900 * 1400 / 8)


def test_an_unknown_corpus_lists_the_known(answers):
    assert answers["unknown"]["code"] == 2
    assert re.fullmatch("error: the description of the data: corpus must be .*, not 'pile'\n", answers["unknown"]["error"])
    assert all(f"'{name}'" in answers["unknown"]["error"] for name in (*CORPORA, "files"))


@pytest.mark.parametrize("said", REFUSED)
def test_what_it_cannot_do_is_refused(answers, said):
    found = answers["refused"][said]
    assert found["code"] == 2 and said in found["error"] and found["error"].count("\n") == 1


def test_it_makes_nobody_else_s_data_again_and_retrains_nobody(answers):
    before = [data_digest("enwik8"), data_digest("c4"), training_digest("poet", "cpu")]
    *after, own = answers["digests"]
    assert after == before
    assert own not in before


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_says_what_the_contract_asks(name):
    corpus = CORPORA[name]
    assert corpus.versions["format"] >= 1
    assert set(corpus.size.documents) == {"train", "validation"}
    assert corpus.size.tokens < corpus.size.text_bytes and corpus.size.source_bytes <= corpus.size.text_bytes
