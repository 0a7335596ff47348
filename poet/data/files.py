"""Folders with one writer at a time, JSON, and hashes of files."""

import contextlib
import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from poet.system.files import PART, readable_disk_errors, write_text


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Locks ``folder`` for one process at a time: a second process waits, and then finds the work done.

    Without the lock, two jobs that share a cache would both download and clean. On a file system without locks they do so; files
    are still whole, because they are renamed into place. Partial files and folders that a killed process left are removed.
    """
    with readable_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".lock", "w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            yield
            return
        for left in folder.glob(f".*{PART}"):
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)
        yield


def write_json(path: Path, value: dict) -> None:
    """Writes ``value`` atomically, with sorted keys, so that equal values are equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def read_json(path: Path) -> dict | None:
    """The JSON object in ``path``; None where there is no such file or it holds no JSON object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None


def sha256_of(path: Path) -> str:
    """The SHA-256 of the bytes of ``path``, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def described_file(path: Path) -> dict:
    """The entry of a complete file in ``meta.json``: its name, size and SHA-256."""
    return {"file": path.name, "file_bytes": path.stat().st_size, "sha256": sha256_of(path)}


def whole(file: dict, folder: Path) -> bool:
    """Whether the file of an entry (:func:`described_file`) is in ``folder`` with the right size."""
    path = folder / file["file"]
    return path.exists() and path.stat().st_size == file["file_bytes"]


def files_of(described: dict) -> list[dict]:
    """The file entries in a part of ``meta.json``, each with ``file``, ``file_bytes`` and ``sha256``: one, one per shard, or none."""
    return described.get("files", [described] if "file" in described else [])
