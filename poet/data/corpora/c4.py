"""C4 (English) as its makers published it: shards of gzip'd lines of JSON, in a local folder or on the hub.

A shard is read line by line, from a folder or from the hub. So processes can share the shards among them, and a reader that
begins in the middle of a shard skips lines without parsing them.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from poet.data.corpora.contract import Shard, ShardedCorpus, Size
from poet.data.errors import DataError

HUB_NAME = "allenai/c4"
# A fixed commit of the hub's repository, so that the documents stay the same.
HUB_REVISION = "1588ec454efa1a09f29cd18ddd04fe05fc8653a2"
HUB_FOLDER = f"hf://datasets/{HUB_NAME}@{HUB_REVISION}/en"
HUB_SHARDS = {"train": 1024, "validation": 8}
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAME = re.compile(r"c4-(?:train|validation)\.(?P<stem>.+?(?:-of-(?P<siblings>\d+))?)\.json\.gz")


class C4(ShardedCorpus):
    name = "c4"
    versions = {"format": 3, "cleaner": 1}  # nothing is cleaned: the second number stays as it was first written
    reads_folder = True
    # C4's "en" as the card of the data set c4 on the Hugging Face hub (legacy-datasets/c4) gives it: documents,
    # 326,778,635,540 bytes of compressed files (304 GiB, the "305GB" of the card's text), and 828.6 GB of train split,
    # of which address and time take about 100 bytes a document. T5's tokens: Birchlabs/c4-t5-ragged on the hub keeps
    # those of the train split in 293 GiB, with two bytes a token and four a document.
    size = Size({"train": 364_868_892, "validation": 364_608}, 2170, 429, 326_778_635_540 / 365_233_500)

    def identity(self):
        """The hub's revision, or name and size of each local shard."""
        if self.path is None:
            return {"name": "c4", "hub": HUB_NAME, "revision": HUB_REVISION}
        shards = self.shards("train") + self.shards("validation")
        return {"name": "c4", "shards": {shard.name: shard.version for shard in shards}}

    def shards(self, split):
        """The files ``c4-<split>.*.json.gz`` of the folder, in the order of their names, or the hub's."""
        if self.path is None:
            count = HUB_SHARDS[split]
            names = [f"c4-{split}.{number:05d}-of-{count:05d}.json.gz" for number in range(count)]
            return [_shard(name, f"{HUB_FOLDER}/{name}", HUB_REVISION) for name in names]
        files = sorted(Path(self.path).glob(f"c4-{split}.*.json.gz"))
        if not files:
            raise DataError(
                f"no C4 shards in {self.path}: expected files named c4-{split}.*.json.gz; "
                'set "path" to the folder that holds them, or to null to read from the hub'
            )
        return [_shard(file.name, str(file), file.stat().st_size) for file in files]

    def documents(self, shard) -> Iterator[bytes]:
        """The lines of a shard, a document each."""
        local = "://" not in shard.url
        if not local:
            import fsspec  # here, because local shards do without
            from huggingface_hub.errors import HTTPError
        # A lost connection raises HTTPError beside OSError.
        errors = (OSError, EOFError, zlib.error) if local else (OSError, EOFError, zlib.error, HTTPError)
        try:
            with open(shard.url, "rb") if local else fsspec.open(shard.url, "rb").open() as packed, gzip.open(packed) as file:
                yield from file
        except errors as error:
            reason = re.sub(r"\s+", " ", str(error))[:200] or type(error).__name__
            if local:
                raise DataError(f"cannot read the C4 shard {shard.url} ({reason}): fetch it again") from error
            raise DataError(
                f"cannot read {shard.name} from the hub ({reason}): connect to the network and run again, "
                'or set "path" to a folder of shards'
            ) from error

    def text(self, document: bytes, shard) -> str:
        try:
            text = json.loads(document)["text"]
        except (ValueError, KeyError, TypeError):
            text = None
        if not isinstance(text, str):
            raise DataError(f'a document in {shard.url} has no "text": is this C4?')
        # JSON allows half of a surrogate pair, which tokenizers refuse.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _SURROGATE.search(text) else text


def _shard(name: str, url: str, version: int | str) -> Shard:
    found = _NAME.fullmatch(name)
    siblings = int(found["siblings"]) if found["siblings"] else None
    return Shard(name, found["stem"], url, version, version if isinstance(version, int) else None, siblings)


CORPUS = C4
