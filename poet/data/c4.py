"""C4 (English): documents from a folder of shards, or streamed from the hub, always in the same order."""

import re
from collections.abc import Iterator
from pathlib import Path

from poet.data.errors import DataError

HUB_NAME = "allenai/c4"
# A fixed commit of the hub's repository, so that the same documents come tomorrow.
HUB_REVISION = "1588ec454efa1a09f29cd18ddd04fe05fc8653a2"


def c4_shards(folder: Path, split: str) -> list[Path]:
    """The files `c4-<split>.*.json.gz` of `folder`, sorted by name. Raises DataError where there are none."""
    shards = sorted(folder.glob(f"c4-{split}.*.json.gz"))
    if not shards:
        raise DataError(
            f"no C4 shards in {folder}: expected files named c4-{split}.*.json.gz; "
            'set "path" to the folder that holds them, or to null to stream from the hub'
        )
    return shards


def c4_identity(path: str | None) -> dict:
    """What says which C4 was read: the hub's revision, or name and size of each local shard."""
    if path is None:
        return {"name": "c4", "hub": HUB_NAME, "revision": HUB_REVISION}
    shards = c4_shards(Path(path), "train") + c4_shards(Path(path), "validation")
    return {"name": "c4", "shards": {shard.name: shard.stat().st_size for shard in shards}}


def c4_documents(path: str | None, split: str) -> Iterator[str]:
    """Yields the text of each document of `split` (`train`, `validation`) in the order of the sorted shards.

    path: a folder of shards, or None for the hub. Raises DataError where there are no shards, a shard is
    damaged, a document has no `text`, or the hub cannot be reached.
    """
    shards = c4_shards(Path(path), split) if path is not None else None
    import datasets.exceptions  # here, because importing it takes seconds and training never needs it

    try:
        if shards:
            names = [str(shard) for shard in shards]
            stream = datasets.load_dataset("json", data_files={split: names}, split=split, streaming=True)
        else:
            stream = datasets.load_dataset(HUB_NAME, "en", split=split, streaming=True, revision=HUB_REVISION)
        for document in stream:
            if not isinstance(document.get("text"), str):
                raise DataError(f'a document of C4 in {path or HUB_NAME} has no "text": is this C4?')
            yield document["text"]
    except (OSError, EOFError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        # Reading a damaged shard and a lost connection raise different types in different versions of
        # `datasets`.
        reason = re.sub(r"\s+", " ", str(error))[:200] or type(error).__name__
        if shards:
            raise DataError(f"cannot read the C4 shards in {path}: {reason}") from error
        raise DataError(
            f"cannot stream C4 from the hub ({reason}): "
            'connect to the network, or set "path" to a folder of shards'
        ) from error
