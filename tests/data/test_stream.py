"""Streamed rows are the prepared ones, from whichever step."""

import gc
import gzip
import json
import threading
import time

import pytest

from poet.data import stream
from poet.data.corpora.c4 import C4
from poet.data.errors import DataError
from poet.data.prepare import prepare
from poet.data.rows import TrainingBatches
from poet.system.files import DiskError
from tests.data.shards import write_shards

ROWS = 25  # of an epoch


@pytest.fixture
def streamed(tmp_path, description):
    """The folder of the streamed data set; its prepared twin lies beside it."""
    prepare(description, tmp_path / "prepared", tmp_path)
    prepare(description | {"stream": True}, tmp_path / "streamed", tmp_path)
    return tmp_path / "streamed"


def same(streamed, batch_rows, steps, seed=1):
    prepared = TrainingBatches(streamed.parent / "prepared", batch_rows, seed)
    batches = TrainingBatches(streamed, batch_rows, seed)
    return all(batches.batch(step).equal(prepared.batch(step)) for step in steps)


def threads_in_the_end(count):
    """How many threads make rows, once they are `count` or a minute has passed."""
    gc.collect()
    end = time.monotonic() + 60
    while True:
        found = [thread for thread in threading.enumerate() if thread.name == "stream of rows"]
        if len(found) == count or time.monotonic() > end:
            return len(found)
        time.sleep(0.05)


def test_nothing_of_the_train_split_is_on_disk(streamed, description, tmp_path):
    assert {path.name for path in streamed.iterdir()} == {".lock", "meta.json", "tokenizer.json", "validation.npy"}
    prepared, meta = (json.loads((tmp_path / name / "meta.json").read_text()) for name in ("prepared", "streamed"))
    assert meta["splits"]["validation"] == prepared["splits"]["validation"]
    assert "no row read" in meta["splits"]["train"]["sha256_of"]
    assert prepare(description | {"stream": True}, streamed, tmp_path) == meta
    assert "stream" not in prepared["data"]
    assert prepare(description | {"stream": False}, tmp_path / "prepared", tmp_path) == prepared


def test_rows_of_another_version_have_another_digest(streamed, description, tmp_path, monkeypatch):
    before = json.loads((streamed / "meta.json").read_text())["splits"]["train"]["sha256"]
    monkeypatch.setitem(C4.versions, "format", C4.versions["format"] + 1)
    assert prepare(description | {"stream": True}, streamed, tmp_path)["splits"]["train"]["sha256"] != before


@pytest.mark.parametrize("batch_rows", [1, 4, 7])
def test_batches_are_the_prepared_ones_over_epochs(streamed, batch_rows):
    assert same(streamed, batch_rows, range(3 * ROWS // batch_rows))


@pytest.mark.parametrize("counted", [False, True])
def test_any_step_can_be_the_first(streamed, counted):
    if counted:
        same(streamed, 5, range(6))
        assert len(list((streamed / "train").glob("*.json"))) == 5
    for step in (0, 1, 3, 4, 5, 11, 26):
        assert same(streamed, 5, [step, step + 1])
    assert same(streamed, 3, [7, 8, 2, 2, 30, 31, 0])  # back and forth


def test_shards_that_were_counted_are_passed_over(streamed, monkeypatch):
    same(streamed, 5, range(6))
    assert threads_in_the_end(0) == 0
    opened = []
    real = C4.documents
    monkeypatch.setattr(C4, "documents", lambda corpus, shard: opened.append(shard.name) or real(corpus, shard))
    monkeypatch.setattr(stream, "AHEAD", 1)
    assert same(streamed, 1, [ROWS - 1])
    assert len(opened) < 4
    assert json.loads((streamed / "train" / "00003-of-00005.json").read_text())["documents"] == 12


def test_a_passed_over_line_is_not_tokenized(streamed, monkeypatch):
    parsed = []
    real = C4.text
    monkeypatch.setattr(C4, "text", lambda corpus, line, shard: parsed.append(line) or real(corpus, line, shard))
    monkeypatch.setattr(stream, "AHEAD", 1)
    batches = TrainingBatches(streamed, ROWS, 1)
    batches.batch(2)
    parsed_of_three = len(parsed)
    assert ROWS <= parsed_of_three <= 3 * ROWS + 12  # the two epochs before are counted only


def test_an_error_in_the_thread_reaches_training(streamed, shards):
    path = shards / "c4-train.00003-of-00005.json.gz"
    content = bytearray(path.read_bytes())
    content[-6] ^= 255  # the checksum of the content, not its size
    path.write_bytes(content)
    batches = TrainingBatches(streamed, 1, 1)
    with pytest.raises(DataError, match="cannot read the C4 shard .*00003-of-00005") as caught:
        for step in range(ROWS):
            batches.batch(step)
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError):
        batches.batch(step)
    assert batches.batch(0).equal(TrainingBatches(streamed.parent / "prepared", 1, 1).batch(0))  # it can begin again


def test_any_other_error_does_too(streamed, monkeypatch):
    def broken(*_):
        raise RuntimeError("out of tokens")

    monkeypatch.setattr(stream, "pad", broken)
    with pytest.raises(DataError, match="out of tokens"):
        TrainingBatches(streamed, 2, 1).batch(0)


def test_other_shards_are_refused(streamed, shards):
    with gzip.open(shards / "c4-train.00001-of-00005.json.gz", "at") as file:
        file.write('{"text": "one more"}\n')
    with pytest.raises(DataError, match="are not those that"):
        TrainingBatches(streamed, 2, 1)


def test_shards_without_documents_end(tmp_path, description):
    write_shards(tmp_path / "empty", {"train": [[], []], "validation": [["cat"]]})
    prepare(description | {"stream": True, "path": str(tmp_path / "empty")}, tmp_path / "out", tmp_path)
    with pytest.raises(DataError, match="hold no documents"):
        TrainingBatches(tmp_path / "out", 2, 1).batch(0)


def test_a_folder_that_cannot_be_written_costs_only_time(streamed, monkeypatch, capsys):
    def full(path, _):
        raise DiskError(f"cannot write {path}")

    monkeypatch.setattr(stream, "write_json", full)
    assert same(streamed, 5, range(8))
    assert capsys.readouterr().err.count("cannot write") == 1


def test_the_thread_ends_with_its_reader(streamed):
    assert threads_in_the_end(0) == 0
    batches = TrainingBatches(streamed, 1, 1)
    batches.batch(0)
    batches.batch(9)
    assert threads_in_the_end(1) == 1
    del batches
    assert threads_in_the_end(0) == 0


@pytest.mark.parametrize(
    "change",
    [{"stream": "yes"}, {"stream": True, "packing": "pack"}, {"stream": True, "train_tokens": 100}],
)
def test_streams_that_make_no_sense_are_refused(tmp_path, description, change):
    with pytest.raises(DataError, match='stream"? (must be|is for|and)'):
        prepare(description | change, tmp_path / "out", tmp_path)
