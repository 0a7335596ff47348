"""From a description to rows, end to end, on a small synthetic dump."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from poet.data import __main__ as command
from poet.data.corpora import enwik8
from poet.data.corpora.enwik8 import is_validation
from poet.data.errors import DataError
from poet.data.prepare import prepare
from poet.data.rows import TokenRows
from poet.data.tokenizer import load_bpe, train_bpe

ENWIK8 = {
    "corpus": "enwik8",
    "tokenizer": {"kind": "bpe", "vocab_size": 290},
    "sequence_length": 16,
    "packing": "pack",
}


@pytest.fixture
def cache(tmp_path, monkeypatch, words):
    """A cache with a small synthetic dump in the place of enwik8."""
    pages = [f"<page><title>T{i}</title><text>{words(i)}</text></page>" for i in range(300)]
    folder = tmp_path / "cache"
    folder.mkdir()
    with gzip.open(folder / "enwik8.gz", "wt") as file:
        file.write("".join(pages))
    monkeypatch.setattr(enwik8, "MD5", enwik8._md5_of_content(folder / "enwik8.gz"))
    return folder


def test_enwik8_end_to_end_is_repeatable_and_done_once(cache, tmp_path, monkeypatch):
    meta = prepare(ENWIK8, tmp_path / "a", cache)
    (cache / f"enwik8-articles-{enwik8.MD5[:8]}-v{enwik8.CLEANER_VERSION}.jsonl.gz").unlink()
    again = prepare(ENWIK8, tmp_path / "b", cache)
    assert again == meta
    for name in ("train.npy", "validation.npy", "tokenizer.json", "meta.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    rows = TokenRows(tmp_path / "a", "train")
    assert len(rows) == meta["splits"]["train"]["rows"] and rows.batch([0, 1]).max() < 290
    monkeypatch.setattr("poet.data.prepare._Stages", None)  # would raise: there is no work left
    assert prepare(ENWIK8, tmp_path / "a", cache) == meta


def test_text_bytes_are_those_of_the_rows(cache, tmp_path):
    meta = prepare(ENWIK8 | {"train_tokens": 500}, tmp_path / "a", cache)
    rows, tokenizer = TokenRows(tmp_path / "a", "train"), load_bpe(tmp_path / "a" / "tokenizer.json")
    text = tokenizer.decode(np.concatenate(rows.batch(range(len(rows))).tolist())).replace("</s>", "")
    assert meta["splits"]["train"]["text_bytes"] == len(text.encode())
    assert meta["splits"]["train"]["tokens"] == 500 // 16 * 16


def test_an_interrupted_preparation_goes_on(cache, tmp_path, monkeypatch):
    whole = prepare(ENWIK8, tmp_path / "whole", cache)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("poet.data.prepare.write_rows", interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepare(ENWIK8, tmp_path / "a", cache)
    assert not (tmp_path / "a" / "meta.json").exists()
    monkeypatch.setattr("poet.data.prepare.train_bpe", interrupt)  # the tokenizer is done already
    assert prepare(ENWIK8, tmp_path / "a", cache) == whole


def test_a_file_of_another_size_is_made_again(cache, tmp_path):
    meta = prepare(ENWIK8, tmp_path / "a", cache)
    (tmp_path / "a" / "train.npy").write_bytes(b"short")
    assert prepare(ENWIK8, tmp_path / "a", cache) == meta
    assert len(TokenRows(tmp_path / "a", "train")) == meta["splits"]["train"]["rows"]


def test_no_text_is_in_the_rows_of_both_splits(cache, tmp_path, words):
    prepare(ENWIK8, tmp_path / "a", cache)
    tokenizer, found = load_bpe(tmp_path / "a" / "tokenizer.json"), {}
    for split in ("train", "validation"):
        rows = TokenRows(tmp_path / "a", split)
        text = tokenizer.decode(np.concatenate(rows.batch(range(len(rows))).tolist()))
        found[split] = {i for i in range(300) if words(i) in text}
    assert len(found["train"]) > 250 and found["validation"]
    assert not found["train"] & found["validation"]


def test_the_tokenizer_sees_no_validation_text(cache, tmp_path, monkeypatch, words):
    seen = []
    real = train_bpe
    monkeypatch.setattr(
        "poet.data.prepare.train_bpe", lambda texts, *rest: real((seen.append(t) or t for t in texts), *rest)
    )
    prepare(ENWIK8, tmp_path / "a", cache)
    assert sorted(seen) == sorted(words(i) for i in range(300) if not is_validation(f"T{i}"))


def test_bpe_is_the_same_in_another_process(tmp_path, monkeypatch):
    texts = [f"cat {i} sat on mat {i % 7} quietly" for i in range(500)]
    code = "import json, sys; from pathlib import Path; from poet.data.tokenizer import train_bpe; train_bpe(json.loads(sys.argv[1]), 320, Path(sys.argv[2]))"
    environment = os.environ | {"RAYON_NUM_THREADS": "4", "PYTHONHASHSEED": "4"}
    subprocess.run([sys.executable, "-c", code, json.dumps(texts), str(tmp_path / "b")], check=True, env=environment)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # one thread here
    train_bpe(texts, 320, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_bpe_special_tokens_in_a_text_are_letters(tmp_path, words):
    tokenizer = train_bpe([words(i) for i in range(20)], 280, tmp_path / "t.json")
    assert (tokenizer.pad_id, tokenizer.eos_id, tokenizer.unk_id) == (0, 1, 2)
    assert tokenizer.encode_batch(["a </s> b<pad>é"])[0].ids.min() > 2


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sequnce_length": 8}, "sequnce_length"),
        ({"tokenizer": {"kind": "bpe", "vocab_size": 300, "size": 1}}, "size"),
        ({"tokenizer": {"kind": "bpe", "vocab_size": 100}}, "259"),
        ({"sequence_length": 0}, "sequence_length"),
        ({"train_tokens": "many"}, "train_tokens"),
        ({"corpus": "pile"}, "corpus must be .*'c4'.*'enwik8'.*, not 'pile'"),
        ({"packing": "stack"}, "packing"),
        ({"path": "/x"}, "path"),
        ({"stream": True}, "stream"),
    ],
)
def test_a_wrong_description_is_refused(cache, tmp_path, change, named):
    with pytest.raises(DataError, match=named):
        prepare(ENWIK8 | change, tmp_path / "a", cache)


def test_command_line(cache, tmp_path, monkeypatch, capsys):
    arguments = ["--folder", str(tmp_path / "a"), "--cache", str(cache)]
    assert command.main([json.dumps(ENWIK8), *arguments]) == 0
    capsys.readouterr()
    for bad in (json.dumps(ENWIK8 | {"speed": 1}), "{", "[]"):
        assert command.main([bad, *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "prepare", interrupt)
    assert command.main([json.dumps(ENWIK8), *arguments]) == 130
