"""From a description to rows, end to end, on a small synthetic dump and small synthetic C4 shards."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tokenizers
import transformers

from poet.data import TokenRows, corpora
from poet.data import __main__ as command
from poet.data.errors import DataError
from poet.data.prepare import is_validation, prepare
from poet.data.tokenizer import load_bpe, train_bpe

ENWIK8 = {
    "corpus": "enwik8",
    "tokenizer": {"kind": "bpe", "vocab_size": 290},
    "sequence_length": 16,
    "packing": "pack",
}


def words(seed: int, n: int = 120) -> str:
    vocabulary = ["cat", "sat", "on", "the", "mat", "while", "rain", "fell", "outside", "quietly"]
    return " ".join(np.random.default_rng(seed).choice(vocabulary, n)) + "."


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache with a small synthetic dump in the place of enwik8."""
    pages = [f"<page><title>T{i}</title><text>{words(i)}</text></page>" for i in range(300)]
    folder = tmp_path / "cache"
    folder.mkdir()
    with gzip.open(folder / "enwik8.gz", "wt") as file:
        file.write("".join(pages))
    monkeypatch.setattr(corpora, "ENWIK8_MD5", corpora._md5_of_content(folder / "enwik8.gz"))
    return folder


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """A word-level tokenizer in a local Hugging Face folder that stands in for T5: pad 0, end 1, unknown
    2."""
    names = ["<pad>", "</s>", "<unk>", *sorted(set(words(0, 400).rstrip(".").split())), "<extra_id_0>"]
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({n: i for i, n in enumerate(names)}, unk_token="<unk>")
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    backend.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    folder = tmp_path_factory.mktemp("stand-in")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    return folder


def test_enwik8_end_to_end_is_repeatable_and_done_once(cache, tmp_path, monkeypatch):
    meta = prepare(ENWIK8, tmp_path / "a", cache)
    (cache / f"enwik8-articles-{corpora.ENWIK8_MD5[:8]}-v{corpora.CLEANER_VERSION}.jsonl.gz").unlink()
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
        patch.setattr("poet.data.prepare._write_rows", interrupt)
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


def test_the_split_holds_out_two_percent_by_title():
    held_out = {f"T{i}" for i in range(20_000) if is_validation(f"T{i}")}
    assert 300 < len(held_out) < 500
    assert held_out == {f"T{i}" for i in reversed(range(20_000)) if is_validation(f"T{i}")}


def test_the_tokenizer_sees_no_validation_text(cache, tmp_path, monkeypatch):
    seen = []
    real = train_bpe
    monkeypatch.setattr(
        "poet.data.prepare.train_bpe", lambda texts, *rest: real((seen.append(t) or t for t in texts), *rest)
    )
    prepare(ENWIK8, tmp_path / "a", cache)
    assert sorted(seen) == sorted(words(i) for i in range(300) if not is_validation(f"T{i}"))


def test_bpe_is_the_same_in_another_process(tmp_path):
    code = (
        "import sys; from pathlib import Path; from poet.data.tokenizer import train_bpe\n"
        "train_bpe([f'cat {i} sat on mat {i % 7} quietly' for i in range(500)], 320, Path(sys.argv[1]))"
    )
    for name, threads in (("a", "1"), ("b", "4")):
        environment = os.environ | {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": threads}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True, env=environment)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_bpe_special_tokens_in_a_text_are_letters(tmp_path):
    tokenizer = train_bpe([words(i) for i in range(20)], 280, tmp_path / "t.json")
    assert (tokenizer.pad_id, tokenizer.eos_id, tokenizer.unk_id) == (0, 1, 2)
    assert tokenizer.encode_batch(["a </s> b<pad>é"])[0].ids.min() > 2


def write_shards(folder, texts: dict[str, list[list[str]]]) -> None:
    folder.mkdir()
    for split, shards in texts.items():
        for i, shard in enumerate(shards):
            with gzip.open(folder / f"c4-{split}.{i:05d}-of-{len(shards):05d}.json.gz", "wt") as file:
                file.writelines(
                    json.dumps({"text": text, "url": "x", "timestamp": "y"}) + "\n" for text in shard
                )


def test_c4_end_to_end(tmp_path, stand_in):
    train = [["cat sat", words(1, 30).rstrip(".")], ["the mat unheard", "rain <extra_id_0>", "cat " * 7]]
    write_shards(tmp_path / "c4", {"train": train, "validation": [["the cat"]]})
    data = {"corpus": "c4", "path": str(tmp_path / "c4"), "tokenizer": {"kind": "hf", "name": str(stand_in)}}
    meta = prepare(data | {"sequence_length": 8, "packing": "pad"}, tmp_path / "out", tmp_path / "cache")
    reference = transformers.AutoTokenizer.from_pretrained(stand_in)
    texts = [text.replace("<extra_id_0>", "unheard") for shard in train for text in shard]
    expected = reference(texts, max_length=8, truncation=True, padding="max_length")["input_ids"]
    rows = TokenRows(tmp_path / "out", "train")
    batch = rows.batch(range(len(rows)))
    assert batch.tolist() == expected
    assert (rows.labels(batch) == -100).sum() == sum(row.count(0) for row in expected)
    assert meta["splits"]["train"]["tokens_without_padding"] == sum(8 - row.count(0) for row in expected)
    assert rows.vocab_size == len(reference) - 1  # the sentinel is no text
    assert len(meta["corpus"]["shards"]) == 3


def test_c4_without_shards_or_damaged(tmp_path, stand_in):
    data = {"corpus": "c4", "path": str(tmp_path), "tokenizer": {"kind": "hf", "name": str(stand_in)}}
    data |= {"sequence_length": 8, "packing": "pad"}
    with pytest.raises(DataError, match="no C4 shards"):
        prepare(data, tmp_path / "out", tmp_path)
    for split in ("train", "validation"):
        (tmp_path / f"c4-{split}.00000-of-00001.json.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="cannot read the C4 shards"):
        prepare(data, tmp_path / "out", tmp_path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sequnce_length": 8}, "sequnce_length"),
        ({"tokenizer": {"kind": "bpe", "vocab_size": 300, "size": 1}}, "size"),
        ({"tokenizer": {"kind": "bpe", "vocab_size": 100}}, "259"),
        ({"sequence_length": 0}, "sequence_length"),
        ({"train_tokens": "many"}, "train_tokens"),
        ({"corpus": "pile"}, "corpus"),
        ({"packing": "stack"}, "packing"),
        ({"path": "/x"}, "path"),
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
