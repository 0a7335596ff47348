"""C4 (English) as its makers published it: shards of gzip'd lines of JSON, in a local folder or on the hub.

A shard is read line by line, the same way wherever it lies: so processes can share the shards among them, and a
reader that goes on in the middle of one passes over lines without parsing them.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from poet.data.errors import DataError

HUB_NAME = "allenai/c4"
# A fixed commit of the hub's repository, so that the same documents come tomorrow.
HUB_REVISION = "1588ec454efa1a09f29cd18ddd04fe05fc8653a2"
HUB_FOLDER = f"hf://datasets/{HUB_NAME}@{HUB_REVISION}/en"
HUB_SHARDS = {"train": 1024, "validation": 8}
_NAME = re.compile(r"c4-(?:train|validation)\.(.+?(?:-of-(\d+))?)\.json\.gz")


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of C4.

    name: as C4 calls it. url: where it is read, a path or an address on the hub. version: what tells that it is
    still the same file, its size in bytes where it is local, else the hub's revision.
    """

    name: str
    url: str
    version: int | str

    @property
    def stem(self) -> str:
        """What is its own of the name, `00017-of-01024`."""
        return _NAME.fullmatch(self.name)[1]

    @property
    def bytes(self) -> int | None:
        """Its compressed size, where it is local."""
        return self.version if isinstance(self.version, int) else None

    @property
    def siblings(self) -> int | None:
        """How many shards of its split there are, where the name says it."""
        count = _NAME.fullmatch(self.name)[2]
        return int(count) if count else None


def c4_shards(path: str | None, split: str) -> list[Shard]:
    """The shards of `split` in the order of their names: the files `c4-<split>.*.json.gz` of the folder `path`, or
    the hub's where it is None. Raises DataError where the folder has none."""
    if path is None:
        count = HUB_SHARDS[split]
        names = [f"c4-{split}.{number:05d}-of-{count:05d}.json.gz" for number in range(count)]
        return [Shard(name, f"{HUB_FOLDER}/{name}", HUB_REVISION) for name in names]
    files = sorted(Path(path).glob(f"c4-{split}.*.json.gz"))
    if not files:
        raise DataError(
            f"no C4 shards in {path}: expected files named c4-{split}.*.json.gz; "
            'set "path" to the folder that holds them, or to null to read from the hub'
        )
    return [Shard(file.name, str(file), file.stat().st_size) for file in files]


def c4_identity(path: str | None) -> dict:
    """What says which C4 was read: the hub's revision, or name and size of each local shard."""
    if path is None:
        return {"name": "c4", "hub": HUB_NAME, "revision": HUB_REVISION}
    shards = c4_shards(path, "train") + c4_shards(path, "validation")
    return {"name": "c4", "shards": {shard.name: shard.version for shard in shards}}


def c4_lines(shard: Shard) -> Iterator[bytes]:
    """Yields the lines of a shard, a document each. Raises DataError where it is damaged or out of reach."""
    local = "://" not in shard.url
    try:
        with _opened(shard.url, local) as packed, gzip.open(packed) as file:
            yield from file
    except (OSError, EOFError, zlib.error, *(() if local else _hub_errors())) as error:
        reason = re.sub(r"\s+", " ", str(error))[:200] or type(error).__name__
        if local:
            raise DataError(f"cannot read the C4 shard {shard.url} ({reason}): fetch it again") from error
        raise DataError(
            f"cannot read {shard.name} from the hub ({reason}): connect to the network and run again, "
            'or set "path" to a folder of shards'
        ) from error


def c4_text(line: bytes, shard: Shard) -> str:
    """The text of the document on a line. Raises DataError where the line holds none."""
    try:
        text = json.loads(line)["text"]
    except (ValueError, KeyError, TypeError):
        text = None
    if not isinstance(text, str):
        raise DataError(f'a document in {shard.url} has no "text": is this C4?')
    return text


def c4_texts(shards: list[Shard]) -> Iterator[str]:
    """Yields the text of each document of `shards`, one shard after the other. Raises DataError as above."""
    return (c4_text(line, shard) for shard in shards for line in c4_lines(shard))


def _opened(url: str, local: bool) -> BinaryIO:
    if local:
        return open(url, "rb")
    import fsspec  # here, because local shards do without

    return fsspec.open(url, "rb").open()


def _hub_errors() -> tuple[type[Exception], ...]:
    """What a lost connection raises beside OSError."""
    from huggingface_hub.errors import HTTPError

    return (HTTPError,)
