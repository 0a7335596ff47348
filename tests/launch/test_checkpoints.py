"""Checkpoints survive truncation, damage, a full disk, a changed spec and changed code."""

import errno
import io
import os

import pytest
import torch

from poet.launch.checkpoints import CheckpointFolder
from poet.training.errors import RunError


def files(store):
    """The checkpoints, oldest first."""
    return sorted(store.folder.glob("*.pt"))


@pytest.fixture
def store(tmp_path):
    """A store with states 1 and 2; ``store.said`` collects its sentences."""
    said = []
    store = CheckpointFolder(tmp_path / "c", "digest", "code", say=said.append)
    store.said = said
    for step in (1, 2):
        weight = torch.full((100,), float(step))
        store.save({"step": step, "weight": weight, "history": [{"loss": float("nan")}]})
    return store


def test_the_newest_is_loaded_and_nothing_is_said(store):
    state = store.load()
    assert state["step"] == 2 and torch.equal(state["weight"], torch.full((100,), 2.0))
    assert state["history"][0]["loss"] != state["history"][0]["loss"]
    assert not store.said
    assert [p.name.partition("-")[0] for p in files(store)] == ["000000001", "000000002"]
    assert sorted(store.folder.iterdir()) == files(store)


def damage(path, way):
    content = path.read_bytes()
    if way == "truncated":
        content = content[: len(content) // 2]
    elif way == "empty":
        content = b""
    elif way == "flipped byte":
        content = content[:500] + bytes([content[500] ^ 1]) + content[501:]
    path.write_bytes(content)


@pytest.mark.parametrize("way", ("truncated", "empty", "flipped byte"))
def test_a_damaged_last_falls_back_to_the_previous_with_a_word(store, way):
    damage(files(store)[-1], way)
    assert store.load()["step"] == 1
    assert len(store.said) == 1 and "damaged or cut short" in store.said[0]
    damage(files(store)[-1], way)
    assert store.load() is None


def test_another_spec_s_checkpoint_is_not_used_and_not_lost(store):
    said = []
    other = CheckpointFolder(store.run_folder, "another", "code", say=said.append)
    assert other.load() is None
    assert len(said) == 1 and "another spec of this run" in said[0] and str(store.folder) in said[0]
    for step in (7, 8, 9):
        other.save({"step": step})
    other.remove()
    assert store.load()["step"] == 2
    store.remove()
    assert not store.run_folder.exists()


def test_other_code_s_checkpoint_is_not_used_and_goes_when_the_run_is_done(store):
    said = []
    today = CheckpointFolder(store.run_folder, "digest", "changed", say=said.append)
    assert today.load() is None
    assert len(said) == 1 and str(store.folder) in said[0]
    assert "made by other training code, or from other weights or examples: not used, and kept; this run starts over" in said[0]
    today.save({"step": 1})
    assert store.load()["step"] == 2  # the code was put back
    today.remove()
    assert not store.run_folder.exists()


def test_a_damaged_last_never_takes_the_place_of_a_good_previous(store):
    damage(files(store)[-1], "truncated")
    assert store.load()["step"] == 1
    store.save({"step": 3})
    damage(files(store)[-1], "truncated")
    assert store.load()["step"] == 1


def test_a_run_that_another_process_trains_is_refused(store):
    with store.claim(), pytest.raises(RunError, match="another process is still training"):
        with CheckpointFolder(store.run_folder, "another", "code").claim():
            raise AssertionError("two processes hold one run")
    with store.claim():
        assert store.load()["step"] == 2


def test_a_crash_while_writing_loses_nothing(store):
    (store.folder / "writing").write_bytes(b"half")
    assert store.load()["step"] == 2
    store.save({"step": 3})
    assert store.load()["step"] == 3 and [p.name[:9] for p in files(store)] == ["000000002", "000000003"]


def test_saving_a_step_again_keeps_a_whole_one(store):
    for part in range(3):
        store.save({"step": 2, "part": part})
    assert store.load()["step"] == 2 and len(files(store)) == 2
    store.save({"step": 2, "part": 2})  # the same bytes: the same file
    assert len(files(store)) == 2


@pytest.mark.parametrize("where", ("fsync", "open", "write", "replace"))
def test_a_full_disk_is_one_sentence_and_the_old_checkpoint_stays(store, monkeypatch, where):
    full = OSError(errno.ENOSPC, "No space left on device")

    def fail(*_, **__):
        raise full

    class FullFile(io.FileIO):
        write = fail

    with monkeypatch.context() as patch:
        if where in ("fsync", "replace"):
            patch.setattr(os, where, fail)
        else:
            import poet.launch.checkpoints as module

            patch.setattr(module, "open", fail if where == "open" else FullFile, raising=False)
        with pytest.raises(RunError, match="No space left on device") as caught:
            store.save({"step": 3})
    assert "\n" not in str(caught.value) and str(store.folder) in str(caught.value)
    assert not (store.folder / "writing").exists()
    assert store.load()["step"] == 2


def test_nothing_saved_is_nothing_loaded(tmp_path):
    store = CheckpointFolder(tmp_path / "none", "digest", "code")
    assert store.load() is None
    store.remove()
