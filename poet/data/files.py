"""Files that are there completely or not at all, one writer at a time, and hashes of them."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from poet.data.errors import DataError

_PART = ".part"


@contextlib.contextmanager
def readable_disk_errors(path: Path) -> Iterator[None]:
    """Turns an OSError inside the block into a DataError that names `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DataError(
                f"the disk is full while writing {path}: free some space and run again"
            ) from error
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Gives a temporary name beside `path` and renames it to `path` at the end of the block.

    Where the block raises (KeyboardInterrupt included) the temporary file is removed and `path` is left as it
    was. Raises DataError where the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_PART}")
    try:
        with readable_disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Holds `folder` for one process at a time: a second one waits, and finds the work of the first done.

    Without this two jobs that share a cache would both download and clean. A file system without locks only
    loses that: the renames keep every file whole. Parts that a killed process left are removed.
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
        for part in folder.glob(f".*{_PART}"):
            part.unlink(missing_ok=True)
        yield


def write_json(path: Path, value: dict) -> None:
    """Writes `value` atomically, with sorted keys, so that equal values are equal bytes."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict | None:
    """The JSON object in `path`; None where there is no such file or it holds no JSON object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None


def sha256_of(path: Path) -> str:
    """The SHA-256 of the bytes of `path`, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
