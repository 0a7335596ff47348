"""Whether the files of a prepared folder still hold what was written."""

from pathlib import Path

from poet.data.errors import DataError
from poet.data.files import files_of, sha256_of
from poet.data.rows import read_meta
from poet.system.progress import Progress


def verify(folder: Path) -> int:
    """Reads every file of a prepared folder and compares its SHA-256 with `meta.json`; returns how many there are.

    Raises DataError that names the files which are missing or damaged.
    """
    meta = read_meta(folder)
    files = [file for part in (meta["tokenizer"], *meta["splits"].values()) for file in files_of(part)]
    damaged = []
    with Progress("verifying", sum(file["file_bytes"] for file in files), "bytes") as progress:
        for file in files:
            path = folder / file["file"]
            if not path.exists() or sha256_of(path) != file["sha256"]:
                damaged.append(file["file"])
            progress.add(file["file_bytes"])
    if damaged:
        raise DataError(
            f"{len(damaged)} of the {len(files)} files in {folder} are missing or damaged ({', '.join(damaged)}): "
            "delete them and prepare the data again, which makes them anew"
        )
    return len(files)
