"""Archives of the package index: what is wrong is a reason in one line."""

import io
import subprocess
import tarfile
import zipfile

import pytest

from poet.data import package_index
from poet.data.errors import DataError
from poet.data.package_index import NotDelivered, download, read


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "x-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("x-1.0/data/a.txt")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"hello"))
    return path


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "x-1.0.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("data/a.txt", b"hello")
    return path


@pytest.mark.parametrize("kind", ["source", "wheel"])
def test_a_file_of_an_archive(request, kind):
    archive = request.getfixturevalue(kind)
    assert read(archive, "data/a.txt") == b"hello"
    with pytest.raises(NotDelivered, match="^no data/b.txt inside$"):
        read(archive, "data/b.txt")
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(NotDelivered, match="^damaged archive, ") as caught:
        read(archive, "data/a.txt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ("WARNING: x\nERROR: No matching distribution\n", NotDelivered, "^No matching distribution$"),
        ("", NotDelivered, "^pip said nothing$"),
        ("ERROR: [Errno 28] No space left on device\n", DataError, "the disk is full"),
    ],
)
def test_what_pip_says_last(tmp_path, monkeypatch, said, error, words):
    monkeypatch.setattr(package_index.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", said))
    with pytest.raises(error, match=words):
        download("x==1.0", "source", tmp_path)
