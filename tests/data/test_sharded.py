"""C4's train split: rows by shard, whoever makes them, however often they are interrupted."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import transformers

from poet.data import __main__ as command
from poet.data import sharded
from poet.data.corpora import c4
from poet.data.errors import DataError
from poet.data.order import epoch_order
from poet.data.prepare import prepare, verify
from poet.data.rows import TokenRows, TrainingBatches
from poet.data.tokenizer import load_prepared
from tests.data.shards import write_shards


def files(folder):
    """Every file that was written, with its bytes."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.npy")}


def rows_by_shard(folder):
    meta = json.loads((folder / "meta.json").read_text())
    return [np.load(folder / shard["file"]) for shard in meta["splits"]["train"]["files"]]


def test_rows_are_those_of_the_tokenizer_s_own_cut(tmp_path, stand_in, words):
    train = [["cat sat", words(1, 30).rstrip(".")], ["the mat unheard", "rain <extra_id_0>", "cat " * 7]]
    write_shards(tmp_path / "c4", {"train": train, "validation": [["the cat"]]})
    data = {"corpus": "c4", "path": str(tmp_path / "c4"), "tokenizer": {"kind": "hf", "name": str(stand_in)}}
    meta = prepare(data | {"sequence_length": 8, "packing": "pad"}, tmp_path / "out", tmp_path / "cache")
    reference = transformers.AutoTokenizer.from_pretrained(stand_in)
    texts = [text.replace("<extra_id_0>", "unheard") for shard in train for text in shard]
    expected = reference(texts, max_length=8, truncation=True, padding="max_length")["input_ids"]
    assert np.concatenate(rows_by_shard(tmp_path / "out")).tolist() == expected
    described = meta["splits"]["train"]
    assert described["tokens_without_padding"] == sum(8 - row.count(0) for row in expected)
    assert [(s["file"], s["rows"]) for s in described["files"]] == [
        ("train/00000-of-00002.npy", 2), ("train/00001-of-00002.npy", 3)
    ]  # fmt: skip
    assert meta["tokenizer"]["vocab_size"] == len(reference) - 1  # the sentinel is no text
    assert len(meta["corpus"]["shards"]) == 3
    validation = TokenRows(tmp_path / "out", "validation")
    batch = validation.batch([0])
    assert (validation.labels(batch) == -100).sum() == (batch == 0).sum() == 5


@pytest.mark.parametrize("change", [{}, {"packing": "pack"}, {"train_tokens": 60}])
def test_the_number_of_processes_changes_nothing(tmp_path, description, change):
    for processes in (1, 3):
        prepare(description | change, tmp_path / str(processes), tmp_path, processes)
    assert files(tmp_path / "1") == files(tmp_path / "3")


def test_a_bpe_speaks_of_its_special_tokens_in_letters_in_every_process(tmp_path, description):
    texts = [f"cat {i} sat </s> on mat {i % 7} quietly" for i in range(40)]
    write_shards(tmp_path / "bpe", {"train": [texts], "validation": [texts]})
    bpe = {"path": str(tmp_path / "bpe"), "tokenizer": {"kind": "bpe", "vocab_size": 262}, "sequence_length": 64}
    prepare(description | bpe, tmp_path / "out", tmp_path)
    rows = TrainingBatches(tmp_path / "out", 40, 0).batch(0)
    assert ((rows == 1).sum(1) == 1).all()


@pytest.mark.parametrize("cap", [8, 25, 61, 64, 500])
def test_a_cap_keeps_the_first_rows(tmp_path, description, cap):
    prepare(description, tmp_path / "whole", tmp_path)
    whole = np.concatenate(rows_by_shard(tmp_path / "whole"))
    kept = np.cumsum((whole != 0).sum(1)) <= cap
    for processes in (1, 2):
        prepare(description | {"train_tokens": cap}, tmp_path / "capped", tmp_path, processes)
        assert np.concatenate(rows_by_shard(tmp_path / "capped")).tolist() == whole[kept].tolist()
        before = times(tmp_path / "capped")
        (tmp_path / "capped" / "meta.json").unlink()
    prepare(description | {"train_tokens": cap}, tmp_path / "capped", tmp_path)  # finds the last shard as it was cut
    validation = before.pop("validation.npy")
    after = times(tmp_path / "capped")
    assert after.pop("validation.npy") != validation and after == before


@pytest.mark.parametrize("cap", [70, 100, 120])
def test_a_cap_goes_on_past_a_shard_that_was_cut_at_a_smaller_one(tmp_path, description, shards, cap):
    capped = description | {"train_tokens": cap}
    prepare(capped, tmp_path / "again", tmp_path)
    (shards / "c4-train.00000-of-00005.json.gz").unlink()  # so more is left for the others
    for folder in ("again", "fresh"):
        prepare(capped, tmp_path / folder, tmp_path)
    again, fresh = (np.concatenate(rows_by_shard(tmp_path / folder)).tolist() for folder in ("again", "fresh"))
    assert again == fresh


INTERRUPTED = """
import signal, sys, time
from poet.data import __main__ as command
from poet.data.corpora.c4 import C4
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background would ignore it
real = C4.documents
def slow(corpus, shard):
    if shard.name.startswith("c4-train.") and not shard.stem.startswith("00000"):
        time.sleep(600)
    return real(corpus, shard)
C4.documents = slow
sys.exit(command.main([sys.argv[1], "--folder", sys.argv[2], "--cache", sys.argv[2], "--processes", "6"]))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_killed_preparation_goes_on_with_what_is_missing(tmp_path, description, repository, number, status):
    whole = prepare(description, tmp_path / "whole", tmp_path)
    folder = tmp_path / "killed"
    environment = os.environ | {"PYTHONPATH": str(repository)}
    arguments = [sys.executable, "-c", INTERRUPTED, json.dumps(description), str(folder)]
    process = subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, start_new_session=True)
    while not (folder / "train" / "00000-of-00005.json").exists():
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.02)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    assert process.wait(timeout=120) == status
    with process.stderr:
        assert "Traceback" not in process.stderr.read().decode()
    before = times(folder)
    started = time.monotonic()
    assert prepare(description, folder, tmp_path) == whole  # waits for no process that was left behind
    assert time.monotonic() - started < 120
    assert before["00000-of-00005.npy"] == times(folder)["00000-of-00005.npy"]
    assert files(folder) == files(tmp_path / "whole")


def test_only_a_shard_that_is_not_whole_is_made_again(tmp_path, description):
    whole = prepare(description, tmp_path / "out", tmp_path)
    before, content = times(tmp_path / "out"), files(tmp_path / "out")
    (tmp_path / "out" / "train" / "00003-of-00005.npy").write_bytes(b"short")
    with pytest.raises(DataError, match="00003-of-00005.npy is not whole"):
        TrainingBatches(tmp_path / "out", 2, 0)
    assert prepare(description, tmp_path / "out", tmp_path) == whole
    after = times(tmp_path / "out")
    assert {name for name in after if after[name] != before[name]} == {"00003-of-00005.npy"}
    assert files(tmp_path / "out") == content


def test_what_another_description_left_is_not_taken(tmp_path, description):
    prepare(description | {"sequence_length": 6}, tmp_path / "out", tmp_path)
    prepare(description, tmp_path / "out", tmp_path)
    prepare(description, tmp_path / "new", tmp_path)
    assert files(tmp_path / "out") == files(tmp_path / "new")
    prepare(description | {"train_tokens": 20}, tmp_path / "out", tmp_path)
    assert len(list((tmp_path / "out" / "train").glob("*.npy"))) == 1


def test_a_source_that_changed_is_read_again(tmp_path, description, shards):
    prepare(description, tmp_path / "out", tmp_path)
    with gzip.open(shards / "c4-train.00001-of-00005.json.gz", "at") as file:
        file.write(json.dumps({"text": "the cat sat outside while rain fell"}) + "\n")
    meta = prepare(description, tmp_path / "out", tmp_path)
    assert [shard["rows"] for shard in meta["splits"]["train"]["files"]] == [7, 2, 0, 12, 5]


def test_half_of_a_surrogate_pair_is_an_unknown_character(shards):
    corpus = c4.C4(str(shards))
    (shard, *_) = corpus.shards("train")
    assert corpus.text(b'{"text": "cat \\ud83d sat \\ud83d\\ude00"}', shard) == "cat \ufffd sat \U0001f600"


@pytest.mark.parametrize(("token", "role"), [("cat", "pad_token"), ("<pad>", "eos_token")])
def test_a_tokenizer_whose_padding_models_do_not_know_is_refused(tmp_path, description, stand_in, token, role):
    transformers.PreTrainedTokenizerFast.from_pretrained(stand_in, **{role: token}).save_pretrained(tmp_path / "other")
    with pytest.raises(DataError, match="models are built for padding that is token 0 and nothing else"):
        prepare(description | {"tokenizer": {"kind": "hf", "name": str(tmp_path / "other")}}, tmp_path / "out", tmp_path)


def test_what_is_finetuned_finds_the_tokenizer_without_a_network(tmp_path, description):
    meta = prepare(description, tmp_path / "out", tmp_path)
    assert load_prepared(tmp_path / "out", meta).encode_batch(["cat sat zebra"])[0].ids.tolist()[-1] == meta["tokenizer"]["unk_id"]


def test_a_tokenizer_that_changed_makes_everything_anew(tmp_path, description, stand_in):
    folder = tmp_path / "tokenizer"
    shutil.copytree(stand_in, folder)
    description = description | {"tokenizer": {"kind": "hf", "name": str(folder)}}
    prepare(description, tmp_path / "out", tmp_path)
    content = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(content.replace('"cat"', '"dog"'))
    for harmed in (tmp_path / "out" / "train").glob("*4-of-00005.npy"):
        harmed.unlink()
    meta = prepare(description, tmp_path / "out", tmp_path)
    assert meta == prepare(description, tmp_path / "new", tmp_path)
    assert files(tmp_path / "out") == files(tmp_path / "new")


def test_verify_names_the_damaged_file(tmp_path, description, capsys):
    folder = tmp_path / "out"
    whole = prepare(description, folder, tmp_path)
    assert verify(folder) == 7  # five shards, validation and the tokenizer
    path = folder / "train" / "00004-of-00005.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    arguments = [json.dumps(description), "--folder", str(folder), "--cache", str(tmp_path)]
    assert command.main([json.dumps(description | {"sequence_length": 16}), *arguments[1:], "--verify"]) == 2
    assert "holds other data than is described" in capsys.readouterr().err
    assert command.main([*arguments, "--verify"]) == 2
    assert "1 of the 7 files" in (error := capsys.readouterr().err) and "(train/00004-of-00005.npy)" in error
    path.unlink()
    assert command.main(arguments) == 0 and command.main([*arguments, "--verify"]) == 0
    assert json.loads((folder / "meta.json").read_text()) == whole


def test_the_hub_s_shards_give_the_same_rows(tmp_path, description, shards, monkeypatch):
    last = c4.C4().shards("train")[-1]
    assert last.name == "c4-train.01023-of-01024.json.gz" and f"@{c4.HUB_REVISION}/en/{last.name}" in last.url
    local = prepare(description, tmp_path / "local", tmp_path)
    monkeypatch.setattr(c4, "HUB_FOLDER", f"file://{shards}")
    monkeypatch.setattr(c4, "HUB_SHARDS", {"train": 5, "validation": 1})
    hub = prepare(description | {"path": None}, tmp_path / "hub", tmp_path)
    assert hub["splits"] == local["splits"] and hub["corpus"]["revision"] == c4.HUB_REVISION
    (shards / "c4-train.00003-of-00005.json.gz").unlink()
    with pytest.raises(DataError, match="cannot read c4-train.00003-of-00005.json.gz from the hub"):
        prepare(description | {"path": None}, tmp_path / "again", tmp_path)


def test_a_disk_that_is_too_small_is_noticed_before_any_work(tmp_path, description, monkeypatch):
    prepare(description, tmp_path / "out", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    (tmp_path / "out" / "meta.json").unlink()
    prepare(description, tmp_path / "out", tmp_path)  # nothing is missing
    with pytest.raises(DataError, match='set "stream: true"'):
        prepare(description, tmp_path / "other", tmp_path)
    assert not list((tmp_path / "other" / "train").glob("*.npy"))


def test_a_killed_worker_is_one_sentence(tmp_path, description, monkeypatch):
    monkeypatch.setattr(sharded, "write_rows", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(DataError, match="was killed, perhaps for want of memory"):
        prepare(description, tmp_path / "out", tmp_path)


def test_a_part_of_the_shards_is_named(tmp_path, description, shards, capsys):
    (shards / "c4-train.00004-of-00005.json.gz").unlink()
    prepare(description, tmp_path / "out", tmp_path)
    assert "holds 4 of the 5 train shards" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no gzip", "cannot read the C4 shard .*00003-of-00005"),
        (gzip.compress(b'{"text": "cat"}\n' * 50)[:-9], "cannot read the C4 shard .*00003-of-00005"),
        (gzip.compress(b'{"txt": "cat"}\n'), 'has no "text"'),
        (gzip.compress(b"[1]\n"), 'has no "text"'),
        (gzip.compress(b"{\n"), 'has no "text"'),
    ],
    ids=["no gzip", "cut", "no text", "a list", "no JSON"],
)
def test_a_shard_that_cannot_be_read_is_named(tmp_path, description, shards, content, message):
    (shards / "c4-train.00003-of-00005.json.gz").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        prepare(description, tmp_path / "out", tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out" / "meta.json").exists()


def test_no_shards_or_no_rows(tmp_path, description, stand_in):
    with pytest.raises(DataError, match="no C4 shards"):
        prepare(description | {"path": str(stand_in)}, tmp_path / "out", tmp_path)
    write_shards(tmp_path / "empty", {"train": [[], []], "validation": [["cat"]]})
    with pytest.raises(DataError, match="the train part of c4 fills no row"):
        prepare(description | {"path": str(tmp_path / "empty")}, tmp_path / "out", tmp_path)


@pytest.mark.parametrize("batch_rows", [1, 4, 7, 60])
def test_batches_read_shard_after_shard_in_an_order_of_each_epoch(tmp_path, description, batch_rows):
    prepare(description, tmp_path / "out", tmp_path)
    by_shard = rows_by_shard(tmp_path / "out")
    epochs = [np.concatenate([by_shard[i] for i in epoch_order(5, 3, epoch)]) for epoch in range(60)]
    expected = np.concatenate(epochs)
    batches = TrainingBatches(tmp_path / "out", batch_rows, 3)
    n_steps = len(expected) // batch_rows
    for step in [*range(min(n_steps, 40)), n_steps - 1, 2, 0]:
        batch = batches.batch(step)
        assert batch.dtype.is_signed and batch.tolist() == expected[step * batch_rows :][:batch_rows].tolist()
    assert (batches.sequence_length, batches.vocab_size, batches.pad_id) == (8, 13, 0)
    other = TrainingBatches(tmp_path / "out", batch_rows, 4)
    assert any(batches.batch(step).tolist() != other.batch(step).tolist() for step in range(n_steps))


def test_the_digest_says_everything(tmp_path, description, shards):
    first = prepare(description, tmp_path / "a", tmp_path)["splits"]["train"]["sha256"]
    assert TrainingBatches(tmp_path / "a", 2, 0).sha256 == first
    one, other = (shards / f"c4-train.0000{i}-of-00005.json.gz" for i in (0, 3))
    one.rename(shards / "swap")
    other.rename(one)
    (shards / "swap").rename(other)
    assert prepare(description, tmp_path / "b", tmp_path)["splits"]["train"]["sha256"] != first
