"""Rows of a corpus in shards: a file for each shard of the source, made by several processes, with a note once it is whole.

Beside each ``<folder>/train/<shard>.npy`` lies a note, a ``.json`` with the file's content and origin. Preparing the folder again,
after a kill or with a damaged file, makes only the files whose note is missing or does not fit them.
"""

import hashlib
import json
import shutil
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from humanfriendly import format_size

from poet.data.corpora import Shard, ShardedCorpus
from poet.data.errors import DataError
from poet.data.estimate import shard_bytes
from poet.data.files import exclusive, read_json, whole, write_json
from poet.data.packing import row_dtype
from poet.data.tokenizer import Tokenizer
from poet.data.workers import workers
from poet.data.writing import write_rows
from poet.system.files import PART
from poet.system.progress import Progress, say

_SUMMED = ("file_bytes", "rows", "tokens", "tokens_without_padding", "text_bytes")
_DESCRIBED = ("file", "sha256", *_SUMMED)


@dataclass(frozen=True, slots=True)
class _Work:
    """Settings that all shards share. ``made_from`` is the digest of everything that decides their rows, except the shards themselves."""

    data: dict
    folder: Path
    corpus: ShardedCorpus
    tokenizer: Tokenizer
    made_from: str

    def path(self, shard: Shard) -> Path:
        return self.folder / f"{shard.stem}.npy"

    def note(self, shard: Shard) -> dict | None:
        """The note of a shard's rows; None where the rows are missing, not whole, or made from something else."""
        note = read_json(self.path(shard).with_suffix(".json"))
        if not note or (note.get("made_from"), note.get("version")) != (self.made_from, shard.version):
            return None
        return note if whole(note, self.folder.parent) else None

    def make(self, shard: Shard, cap: int | None) -> dict:
        """Writes the rows of a shard, of at most ``cap`` tokens without padding, and their note; returns the note."""
        path = self.path(shard)
        described, all_read = write_rows(self.corpus.texts_of(shard), self.tokenizer, self.data, cap, path)
        note = described | {
            "file": f"{self.folder.name}/{path.name}",
            "made_from": self.made_from,
            "version": shard.version,
            "cap": cap,
            "all_read": all_read,
        }
        write_json(path.with_suffix(".json"), note)
        return note


def write_shards(data: dict, folder: Path, corpus: ShardedCorpus, tokenizer: Tokenizer) -> dict:
    """Makes the rows of the train split, and returns its part of ``meta.json``.

    With a cap on the tokens, the rows are the first in the order of the shards, up to the cap, for any number of processes.

    Raises:
        DataError: the disk is too small for the missing shards, a shard cannot be read, a process was killed, or there
            is no row.
    """
    made_from = {key: data[key] for key in ("packing", "sequence_length", "train_tokens")}
    made_from |= {"format": corpus.versions["format"], "tokenizer": tokenizer.sha256}
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    work = _Work(data, folder / "train", corpus, tokenizer, digest)
    shards = corpus.shards("train")
    if shards[0].siblings and len(shards) < shards[0].siblings:
        say(f"{data['path']} holds {len(shards)} of the {shards[0].siblings} train shards of {corpus.name}: the rows are theirs")
    with exclusive(work.folder):
        _check_space(work, shards)
        kept = _in_order(work, shards)
        _remove_others(work.folder, kept)
    if not any(note["rows"] for note in kept):
        raise DataError(f"the train part of {corpus.name} fills no row of {data['sequence_length']} tokens")
    digests = "".join(f"{note['sha256']}\n" for note in kept)
    return {key: sum(note[key] for note in kept) for key in _SUMMED} | {
        "sha256": hashlib.sha256(digests.encode()).hexdigest(),
        "sha256_of": "the sha256 of each file, in order, a line each",
        "files": [{key: note[key] for key in _DESCRIBED} for note in kept],
    }


def _in_order(work: _Work, shards: list[Shard]) -> list[dict]:
    """The notes of the shards in their order, up to the one in which the cap is reached."""
    left, notes = work.data["train_tokens"], []
    try:
        with workers(work.corpus.processes) as pool, Progress("tokenizing train", len(shards), "shards") as progress:
            made = [(shard, work.note(shard) or pool.submit(work.make, shard, left)) for shard in shards]
            for shard, note in made:
                note = note.result() if isinstance(note, Future) else note
                reached = _reached(note, left)
                if reached and note["cap"] != left:
                    note = work.make(shard, left)  # not in the pool, where it would wait for all other shards
                    reached = _reached(note, left)  # a shard that was cut at a smaller cap may end before this one
                notes.append(note)
                progress.add(1)
                if reached:
                    break
                if left is not None:
                    left -= note["tokens_without_padding"]
    except BrokenProcessPool as error:
        raise DataError(
            f"a process that made rows in {work.folder} was killed, perhaps for want of memory: "
            "run again to go on with the missing shards, with fewer processes or more memory"
        ) from error
    return notes


def _reached(note: dict, left: int | None) -> bool:
    """Whether a shard reaches a cap of ``left`` tokens, None for no cap."""
    return left is not None and not (note["all_read"] and note["tokens_without_padding"] <= left)


def _check_space(work: _Work, shards: list[Shard]) -> None:
    """Raises DataError now if the disk would be full hours later."""
    missing = [shard for shard in shards if work.note(shard) is None]
    if not missing:
        return
    itemsize = row_dtype(work.tokenizer.vocab_size).itemsize
    needed, free = shard_bytes(work.data, work.corpus, missing, itemsize), shutil.disk_usage(work.folder).free
    if needed > free:
        raise DataError(
            f"the rows of {len(missing):,} shards need about {format_size(needed)} in {work.folder} and its disk has "
            f'{format_size(free)} free: free some space, set "stream: true" in the description of the data, which '
            'keeps no training rows on disk, or cap "train_tokens"'
        )


def _remove_others(folder: Path, kept: list[dict]) -> None:
    """Removes rows and notes that are not part of the data: of another description, beyond the cap, or left by a killed process."""
    names = {Path(note["file"]).stem for note in kept}
    for path in [path for ending in ("npy", "json", PART[1:]) for path in folder.glob(f"*.{ending}")]:
        if path.stem not in names:
            path.unlink()
