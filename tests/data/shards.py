"""Shards in C4's layout."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path


def write_shards(folder: Path, texts: dict[str, list[Iterable[str]]]) -> None:
    """Write ``{split: [texts of a shard, ...]}`` into a new folder."""
    folder.mkdir()
    for split, shards in texts.items():
        for i, shard in enumerate(shards):
            with gzip.open(folder / f"c4-{split}.{i:05d}-of-{len(shards):05d}.json.gz", "wt") as file:
                file.writelines(json.dumps({"text": text, "url": "x", "timestamp": "y"}) + "\n" for text in shard)
