"""A corpus is one file; the registry finds it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from poet.data import corpora
from poet.data.corpora import CORPORA
from poet.data.tokenizer import load_bpe
from poet.system.registry import discover

#: The example that docs/data.md shows.
FILE = (Path(corpora.__file__).parents[3] / "docs" / "examples" / "files.py").read_text()
DESCRIPTION = {"corpus": "files", "path": "texts", "tokenizer": {"kind": "bpe", "vocab_size": 270}, "sequence_length": 8, "packing": "pack"}


@pytest.fixture(scope="module")
def copy(repository, tmp_path_factory):
    """A copy of the package with one file more."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(repository / "poet", root / "poet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(repository / "requirements.lock", root)
    (root / "poet" / "data" / "corpora" / "files.py").write_text(FILE)
    (root / "texts").mkdir()
    for number in range(40):
        (root / "texts" / f"{number:02d}.txt").write_text(f"the number {number} comes after {number - 1}")
    return root


def python(root, *arguments):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, text=True)


def prepared(root, description, *options):
    return python(root, "-m", "poet.data", json.dumps(description), "--folder", root / "rows", "--cache", root / "cache", *options)


def test_a_new_file_is_a_new_corpus(copy):
    done = prepared(copy, DESCRIPTION)
    assert done.returncode == 0, done.stderr
    meta = json.loads((copy / "rows" / "meta.json").read_text())
    assert meta["corpus"]["name"] == "files" and len(meta["corpus"]["bytes"]) == 40
    text = load_bpe(copy / "rows" / "tokenizer.json").decode(np.load(copy / "rows" / "train.npy").reshape(-1))
    assert text.startswith("the number 1 comes after 0</s>the number 2 ") and "number 10 " not in text
    code = "from poet.data.rows import TrainingBatches as T; print(T('rows', 2, 0).batch(3).shape)"
    assert python(copy, "-c", code).stdout.strip() == "torch.Size([2, 8])"
    assert prepared(copy, DESCRIPTION, "--verify").stdout.startswith("3 files")


def test_its_costs_are_estimated(copy):
    code = f"from poet.data.estimate import estimate; print(estimate({DESCRIPTION}).rows)"
    assert python(copy, "-c", code).stdout.strip() == str(round(900 * 1400 / 8))


def test_an_unknown_corpus_lists_the_known(copy):
    done = prepared(copy, DESCRIPTION | {"corpus": "pile"})
    assert done.returncode == 2
    assert done.stderr == "error: the description of the data: corpus must be 'c4', 'enwik8' or 'files', not 'pile'\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stream": True, "packing": "pad"}, "corpora in shards"),
        ({"corpus": "enwik8"}, "corpus 'enwik8' reads no folder"),
        ({"path": "poet"}, "finds no text"),
    ],
)
def test_what_it_cannot_do_is_refused(copy, change, said):
    done = prepared(copy, DESCRIPTION | change)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_it_makes_nobody_else_s_data_again_and_retrains_nobody(copy, repository):
    code = (
        "from poet.launch.sources import data_digest as d, training_digest as t\n"
        "print(d('enwik8'), d('c4'), t('poet', 'cpu'), d('files'))"
    )
    *before, without = python(repository, "-c", code).stdout.split()
    *after, own = python(copy, "-c", code).stdout.split()
    assert after == before and len(after) == 3
    assert own != without


def test_two_files_with_one_name_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "__path__", [*corpora.__path__, str(tmp_path)])
    (tmp_path / "zz_mine.py").write_text(FILE.replace('"files"', '"enwik8"', 1))
    with pytest.raises(ImportError, match="two files in poet/data/corpora define a corpus named 'enwik8'"):
        discover("poet.data.corpora", "CORPUS")
    sys.modules.pop("poet.data.corpora.zz_mine")


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_says_what_the_contract_asks(name):
    corpus = CORPORA[name]
    assert corpus.versions["format"] >= 1
    assert set(corpus.size.documents) == {"train", "validation"}
    assert corpus.size.tokens < corpus.size.text_bytes and corpus.size.source_bytes < corpus.size.text_bytes
