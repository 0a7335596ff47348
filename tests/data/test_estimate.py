"""What is said of a data set before it is made."""

import json

import pytest

from poet.data import __main__ as command
from poet.data import rate
from poet.data.corpora.c4 import C4
from poet.data.errors import DataError
from poet.data.estimate import estimate, shard_bytes
from poet.data.prepare import prepare

PAPER = {
    "corpus": "c4",
    "tokenizer": {"kind": "hf", "name": "t5-base"},
    "sequence_length": 256,
    "packing": "pad",
}


def test_c4_at_paper_scale():
    costs = estimate(PAPER, rows=500_000 * 512, rows_per_core_second=1000)
    assert costs.rows == 364_868_892 and costs.passes == pytest.approx(0.7016, abs=1e-4)
    assert costs.prepared_bytes == (364_868_892 + 364_608) * 512
    assert costs.source_bytes == 326_778_635_540
    assert costs.core_hours == pytest.approx(365_233_500 / 1000 / 3600)
    assert estimate(PAPER).passes == 1
    assert shard_bytes(PAPER | {"train_tokens": None}, C4(), C4().shards("train"), 2) == 364_868_892 * 512


def test_a_stream_keeps_only_validation_and_reads_what_a_run_reads():
    costs = estimate(PAPER | {"stream": True}, rows=364_868_892 // 2, rows_per_core_second=1000)
    assert costs.prepared_bytes == 364_608 * 512
    assert costs.source_bytes == pytest.approx(326_778_635_540 / 2, rel=0.002)
    assert costs.core_hours == pytest.approx((364_868_892 / 2 + 364_608) / 1000 / 3600)


def test_a_cap_and_packing():
    costs = estimate(PAPER | {"packing": "pack", "train_tokens": 1_000_000, "validation_tokens": 100_000})
    assert (costs.rows, costs.prepared_bytes) == (round(1_000_000 / 256), (3906 + 391) * 512)
    assert costs.source_bytes == pytest.approx(1_100_000 / 429 * 326_778_635_540 / 365_233_500, rel=0.01)
    padded = estimate(PAPER | {"train_tokens": 1_000_000})
    assert padded.rows == round(1_000_000 / 256 / 0.76)
    assert estimate(PAPER | {"packing": "pack"}).rows == pytest.approx(364_868_892 * 429 / 256, abs=1)


def test_enwik8_is_estimated_near_what_it_is():
    data = {"corpus": "enwik8", "tokenizer": {"kind": "bpe", "vocab_size": 1024}, "sequence_length": 64}
    costs = estimate(data | {"packing": "pack", "train_tokens": 100_000, "validation_tokens": 8192})
    assert costs.prepared_bytes == pytest.approx(200_064 + 16_512, rel=0.01)  # as prepared
    assert costs.core_hours < 0.01


def test_a_folder_of_shards_is_scaled_by_its_bytes(shards, description):
    size = sum(path.stat().st_size for path in shards.glob("*.json.gz"))
    costs = estimate(description)
    assert costs.source_bytes == pytest.approx(size, rel=0.01)
    assert estimate(description | {"path": str(shards / "nowhere")}).rows == 364_868_892
    with pytest.raises(DataError, match="sequence_length"):
        estimate(description | {"sequence_length": 0})


@pytest.fixture
def few_texts(monkeypatch, words):
    monkeypatch.setattr(rate, "_texts", lambda cache: (words(i, 300) for i in range(60)))
    monkeypatch.setattr(rate, "TRAINING", 20)


def test_the_rate_is_of_the_description_s_tokenizer(few_texts, description, tmp_path, capsys):
    assert command.main([json.dumps(description), "--estimate", "--cache", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 5 and description["tokenizer"]["name"] in said and "40 rows of 40 texts" in said
    measured, name = rate.measure(description | {"tokenizer": {"kind": "bpe", "vocab_size": 270}}, tmp_path)
    assert measured > 0 and name.startswith("a BPE of 270 tokens")


def test_a_stand_in_is_called_one(few_texts, description, tmp_path, capsys):
    absent = {"tokenizer": {"kind": "hf", "name": str(tmp_path)}}
    measured, name = rate.measure(description | absent, tmp_path)
    assert measured > 0 and name.startswith("a stand-in of T5's kind")
    assert "a stand-in is timed: cannot load the tokenizer" in capsys.readouterr().err


def test_the_command_line_asks_for_what_it_needs(description, tmp_path, capsys):
    for arguments in ([], ["--verify"], ["--estimate"], ["--folder", str(tmp_path)]):
        with pytest.raises(SystemExit):
            command.main([json.dumps(description), *arguments])
        assert "required" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main([json.dumps(description), "--folder", str(tmp_path), "--cache", str(tmp_path), "--processes", "0"])
    assert "--processes is 1 or more, not 0" in capsys.readouterr().err
    assert command.main([json.dumps(description), "--verify", "--folder", str(tmp_path / "none")]) == 2
    assert "holds no prepared data" in capsys.readouterr().err
    meta = prepare(description | {"stream": True}, tmp_path / "out", tmp_path)
    arguments = ["--folder", str(tmp_path / "out"), "--cache", str(tmp_path)]
    assert command.main([json.dumps(description | {"stream": True}), *arguments]) == 0
    assert f"train: streamed, sha256 {meta['splits']['train']['sha256']}" in capsys.readouterr().out
