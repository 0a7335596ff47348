"""Atomic writing of files, and locks on them."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from poet.system.errors import UserError

#: Suffix of a file that is being written.
PART = ".part"


class DiskError(UserError):
    """A file cannot be written."""


@contextlib.contextmanager
def readable_disk_errors(path: Path) -> Iterator[None]:
    """Turn an OSError inside the block into a :class:`DiskError` that names ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskError(f"the disk is full while writing {path}: free some space and run again") from error
        raise DiskError(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path`` and rename it to ``path`` at the end of the block.

    If the block raises (KeyboardInterrupt included), the temporary file is removed and ``path`` is left as it was.

    Raises:
        DiskError: the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        with readable_disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())  # else a power cut may leave the name without its content
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):  # of a disk that is gone or read-only: the first error says what is wrong
            temporary.unlink(missing_ok=True)


def try_lock(file: IO) -> bool | None:
    """Lock an open file until this process closes it or ends.

    Returns:
        Whether this process has the lock now; None on a file system without locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
        return None
    return True


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; see :func:`atomic_path` for the errors."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
