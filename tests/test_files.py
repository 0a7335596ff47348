"""Files that are there completely or not at all."""

import errno
import os

import pytest
from poet.system.files import DiskError, atomic_path, write_text


def test_atomic_write_leaves_no_other_file(tmp_path):
    path = tmp_path / "deep" / "a.json"
    write_text(path, "one")
    write_text(path, "two")
    assert path.read_text() == "two"
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_text(path, "old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(DiskError, match="disk is full while writing"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_an_interrupt_leaves_nothing_half_written(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic_path(tmp_path / "x") as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
