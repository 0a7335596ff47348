"""From the description of a data set to a folder of rows: fetch, clean, split, train the tokenizer, tokenize, pack.

Each stage leaves complete files and a note in ``stages.json``, so that an interrupted preparation goes on where it stopped;
``meta.json`` is written last and says that the folder is complete. The train split of a corpus in shards is the work of
``poet.data.sharded``, or none where the description says ``stream``.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from poet.data.corpora import CORPORA, Corpus, ShardedCorpus
from poet.data.description import check_description
from poet.data.errors import DataError
from poet.data.files import described_file, exclusive, files_of, read_json, sha256_of, whole, write_json
from poet.data.rows import read_meta
from poet.data.sharded import write_shards
from poet.data.tokenizer import BPE_TRAINING_BYTES, Tokenizer, load_bpe, load_hf, train_bpe
from poet.data.writing import write_rows
from poet.system.files import write_text
from poet.system.progress import Progress

STAGES = "stages.json"


def prepare(data: dict, folder: Path, cache: Path, processes: int = 2) -> dict:
    """Makes the rows of a data set, ``tokenizer.json`` and ``meta.json``, and returns the latter.

    Rows are (rows, sequence_length), uint16, or uint32 where the vocabulary needs it: ``validation.npy`` and
    ``train.npy``, of a corpus in shards ``train/<shard>.npy``, or with ``stream`` no train rows at all (``poet.data.stream``
    makes them as training reads them). Does nothing where the folder holds this very data set, made from the text that
    "path" has now.

    Args:
        data: as ``poet.data.description.Description`` has it.
        folder: of the data set.
        cache: for what corpora fetch.
        processes: how many share the work; the result does not depend on it.

    Raises:
        DataError: something that the user can put right; the sentence says what.
    """
    data, folder = check_description(data), Path(folder)
    corpus = CORPORA[data["corpus"]](data["path"], Path(cache), processes)
    wanted = {"data": data, "versions": corpus.versions}
    with exclusive(folder):
        meta = read_json(folder / "meta.json")
        if meta and wanted.items() <= meta.items():
            same = corpus.identity().items() <= meta["corpus"].items()
            if same and all(whole(file, folder) for file in prepared_files(meta)):
                return meta
            # Files that are still whole are kept, as those of finished stages.
            done = {"corpus": meta["corpus"], "tokenizer": meta["tokenizer"], **meta["splits"]}
            write_json(folder / STAGES, wanted | {"done": done})
        # From here on the folder is not complete: without meta.json, readers refuse it.
        (folder / "meta.json").unlink(missing_ok=True)
        stages, identity = _Stages(folder, wanted), corpus.identity()
        described = stages.run("corpus", lambda: identity | corpus.details(), identity)
        tokenizer = _tokenizer(data, folder, corpus, stages)
        # The small split first: errors show before hours of work, and it is kept when train rows are made again.
        validation = stages.run("validation", lambda: _write_split(data, "validation", folder, corpus, tokenizer))
        if data.get("stream"):
            train = stages.run("train", lambda: _streamed(wanted, identity, stages.done["tokenizer"]))
        elif isinstance(corpus, ShardedCorpus):
            train = stages.run("train", lambda: write_shards(data, folder, corpus, tokenizer))
        else:
            train = stages.run("train", lambda: _write_split(data, "train", folder, corpus, tokenizer))
        meta = wanted | {
            "corpus": described,
            "tokenizer": stages.done["tokenizer"],
            "sequence_length": data["sequence_length"],
            "splits": {"train": train, "validation": validation},
        }
        write_json(folder / "meta.json", meta)
        (folder / STAGES).unlink()
    return meta


def prepared_files(meta: dict) -> list[dict]:
    """Every file of a prepared folder, with ``file``, ``file_bytes`` and ``sha256``."""
    return [file for part in (meta["tokenizer"], *meta["splits"].values()) for file in files_of(part)]


def verify(folder: Path) -> int:
    """Reads every file of a prepared folder and compares its SHA-256 with ``meta.json``; returns how many there are.

    Raises:
        DataError: files are missing or damaged; the sentence names them.
    """
    files, damaged = prepared_files(read_meta(folder)), []
    with Progress("verifying", sum(file["file_bytes"] for file in files), "bytes") as progress:
        for file in files:
            if not whole(file, folder) or sha256_of(folder / file["file"]) != file["sha256"]:
                damaged.append(file["file"])
            progress.add(file["file_bytes"])
    if damaged:
        raise DataError(
            f"{len(damaged)} of the {len(files)} files in {folder} are missing or damaged ({', '.join(damaged)}): "
            "delete them and prepare the data again, which makes them anew"
        )
    return len(files)


class _Stages:
    """The finished stages and their results, kept in ``<folder>/stages.json`` until all stages are finished."""

    def __init__(self, folder: Path, wanted: dict):
        self._path, self._folder, self._wanted = folder / STAGES, folder, wanted
        saved = read_json(self._path)
        self._saved: dict[str, dict] = saved["done"] if saved and wanted.items() <= saved.items() else {}
        self.done: dict[str, dict] = {}

    def run(self, name: str, work: Callable[[], dict], facts: dict | None = None) -> dict:
        """The result of ``work``, or the saved one if its files and ``facts`` are unchanged and no stage before it was done again."""
        saved = self._saved.get(name)
        if saved and (facts or {}).items() <= saved.items() and all(whole(file, self._folder) for file in files_of(saved)):
            self.done[name] = saved
        else:
            self._saved = {}
            self.done[name] = work()
            write_json(self._path, self._wanted | {"done": self.done})
        return self.done[name]


def _tokenizer(data: dict, folder: Path, corpus: Corpus, stages: _Stages) -> Tokenizer:
    description, path = data["tokenizer"], folder / "tokenizer.json"
    if description["kind"] == "hf":
        tokenizer = load_hf(description["name"])
        if tokenizer.pad_id or not tokenizer.eos_id:
            raise DataError(
                f"the tokenizer {description['name']!r} pads with token {tokenizer.pad_id} and ends with {tokenizer.eos_id}: models are built for "
                "padding that is token 0 and nothing else, as T5's is; choose another tokenizer"
            )

        def describe() -> dict:
            write_text(path, tokenizer.backend.to_str())
            return _describe(tokenizer) | {"unk_id": tokenizer.unk_id} | described_file(path)

        stages.run("tokenizer", describe, {"sha256": tokenizer.sha256})
        return tokenizer

    def train() -> dict:
        with Progress("training the tokenizer", None, "tokens") as progress:
            trained = train_bpe(corpus.texts("train"), description["vocab_size"], path)
            progress.add(trained.vocab_size)
        return _describe(trained) | described_file(path) | {"training_bytes": BPE_TRAINING_BYTES}

    stages.run("tokenizer", train)
    return load_bpe(path)


def _describe(tokenizer: Tokenizer) -> dict:
    return {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad_id, "eos_id": tokenizer.eos_id}


def _write_split(data: dict, split: str, folder: Path, corpus: Corpus, tokenizer: Tokenizer) -> dict:
    cap = data[f"{split}_tokens"]
    with Progress(f"tokenizing {split}", cap, "tokens") as progress:
        described, _ = write_rows(corpus.texts(split), tokenizer, data, cap, folder / f"{split}.npy", progress.add)
    if not described["rows"]:
        raise DataError(f"the {split} part of {corpus.name} fills no row of {data['sequence_length']} tokens")
    return described


def _streamed(wanted: dict, identity: dict, tokenizer: dict) -> dict:
    made_from = wanted | {"corpus": identity, "tokenizer": tokenizer["sha256"]}
    return {
        "stream": True,
        "sha256": hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest(),
        "sha256_of": "what the rows are made from, no row read: description, versions of the code, names and sizes of the shards or the "
        "hub's revision, tokenizer",
    }
