"""From the description of a data set to a folder of rows: fetch, clean, split, train the tokenizer, tokenize,
pack.

Each stage leaves complete files and a note in `stages.json`, so that an interrupted preparation goes on
where it stopped; `meta.json` is written last and says that the folder is complete. C4's train split is the work of
`poet.data.sharded`, or none where the description says `stream`.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from poet.data.c4 import c4_identity, c4_shards, c4_texts
from poet.data.corpora import ENWIK8_MD5, enwik8_articles, read_articles, title_hash
from poet.data.description import check_description
from poet.data.errors import DataError
from poet.data.files import exclusive, files_of, read_json, sha256_of, write_json
from poet.data.sharded import write_shards
from poet.data.tokenizer import BPE_TRAINING_BYTES, Tokenizer, load_bpe, load_hf, train_bpe
from poet.data.wikitext import CLEANER_VERSION
from poet.data.writing import write_rows
from poet.system.files import write_text
from poet.system.progress import Progress

# Raise one whenever equal descriptions of its corpus give other rows or another meta.json than before.
FORMAT_VERSIONS = {"enwik8": 1, "c4": 2}
SPLITS, STAGES = ("train", "validation"), "stages.json"
VALIDATION_SHARE = 0.02  # of the articles of enwik8; C4 brings its own split


def prepare(data: dict, folder: Path, cache: Path, processes: int = 2) -> dict:
    """Makes the rows of a data set, `tokenizer.json` (BPE, and where rows are streamed) and `meta.json`, and
    returns the latter.

    data: `{"corpus": "enwik8" | "c4", "path": folder of C4 shards or None for the hub, "tokenizer":
    {"kind": "bpe", "vocab_size": int} | {"kind": "hf", "name": str}, "sequence_length": int,
    "packing": "pack" | "pad", "train_tokens": int | None, "validation_tokens": int | None, "stream": bool}`; the
    caps are of the tokens that are no padding. processes: how many share the work; the result does not depend on it.
    Rows are (rows, sequence_length), uint16, or uint32 where the vocabulary needs it: `validation.npy` and
    `train.npy`, of C4 `train/<shard>.npy`, or with `stream` no train rows at all (`poet.data.stream` makes them as
    training reads them). Does nothing where the folder holds this very data set. Raises DataError for whatever the
    user can put right.
    """
    data, folder, cache = check_description(data), Path(folder), Path(cache)
    versions = {"format": FORMAT_VERSIONS[data["corpus"]], "cleaner": CLEANER_VERSION}
    wanted = {"data": data, "versions": versions}
    with exclusive(folder):
        meta = read_json(folder / "meta.json")
        if meta and all(meta.get(key) == value for key, value in wanted.items()):
            if _complete(meta, folder):
                return meta
            _Stages.keep(meta, folder)
        # From here on the folder is not complete; a reader that finds no meta.json says so.
        (folder / "meta.json").unlink(missing_ok=True)
        if data["corpus"] == "c4":
            meta = _prepare_c4(data, folder, wanted, processes)
        else:
            meta = _prepare_enwik8(data, folder, cache, wanted, processes)
        write_json(folder / "meta.json", meta)
        (folder / STAGES).unlink()
    return meta


def _prepare_enwik8(data: dict, folder: Path, cache: Path, wanted: dict, processes: int) -> dict:
    stages = _Stages(folder, wanted)
    articles = enwik8_articles(cache, processes)

    def texts(split: str) -> Iterator[str]:
        found = read_articles(articles)
        return (prose for title, prose in found if is_validation(title) == (split == "validation"))

    stages.run("corpus", lambda: _enwik8_identity(articles))
    tokenizer = _tokenizer(data, folder, texts, stages)
    for split in SPLITS:
        stages.run(split, lambda split=split: _write_split(data, split, folder, texts, tokenizer))
    return _meta(data, wanted, stages)


def _prepare_c4(data: dict, folder: Path, wanted: dict, processes: int) -> dict:
    stages, corpus = _Stages(folder, wanted), c4_identity(data["path"])

    def texts(split: str) -> Iterator[str]:
        return c4_texts(c4_shards(data["path"], split))

    stages.run("corpus", lambda: corpus, **corpus)
    tokenizer = _tokenizer(data, folder, texts, stages)
    # The small one first: what is wrong shows before hours of work, and it stays when a train shard is made again.
    stages.run("validation", lambda: _write_split(data, "validation", folder, texts, tokenizer))
    if data.get("stream"):
        stages.run("train", lambda: _streamed(data, corpus, stages.done["tokenizer"]))
    else:
        version = wanted["versions"]["format"]
        stages.run("train", lambda: write_shards(data, folder, tokenizer, version, processes))
    return _meta(data, wanted, stages)


def _streamed(data: dict, corpus: dict, tokenizer: dict) -> dict:
    made_from = {"data": data, "corpus": corpus, "tokenizer": tokenizer["sha256"]}
    return {
        "stream": True,
        "sha256": _sha256_of_text(json.dumps(made_from, sort_keys=True)),
        "sha256_of": "what the rows are made from, no row read: description, names and sizes of the shards or the "
        "hub's revision, tokenizer",
    }


def _meta(data: dict, wanted: dict, stages: "_Stages") -> dict:
    return wanted | {
        "corpus": stages.done["corpus"],
        "tokenizer": stages.done["tokenizer"],
        "sequence_length": data["sequence_length"],
        "splits": {split: stages.done[split] for split in SPLITS},
    }


class _Stages:
    """The stages that are done, and what each found, kept in `<folder>/stages.json` until all are."""

    def __init__(self, folder: Path, wanted: dict):
        self._path, self._folder, self._wanted = folder / STAGES, folder, wanted
        saved = read_json(self._path)
        ours = saved and all(saved.get(key) == value for key, value in wanted.items())
        self._saved: dict[str, dict] = saved["done"] if ours else {}
        self.done: dict[str, dict] = {}

    def run(self, name: str, work: Callable[[], dict], /, **facts: object) -> None:
        """Runs `work` unless it is done, with these facts still among what it found; once one stage is remade, all
        that follow are."""
        saved = self._saved.get(name)
        if saved and facts.items() <= saved.items() and _file_matches(saved, self._folder):
            self.done[name] = saved
            return
        self._saved = {}
        self.done[name] = work()
        write_json(self._path, self._wanted | {"done": self.done})

    @staticmethod
    def keep(meta: dict, folder: Path) -> None:
        """Takes the stages of a folder that was complete, so that what is still whole of it stays."""
        done = {"corpus": meta["corpus"], "tokenizer": meta["tokenizer"], **meta["splits"]}
        write_json(folder / STAGES, {"data": meta["data"], "versions": meta["versions"], "done": done})


def is_validation(title: str) -> bool:
    """Whether an article of enwik8 is held out: about 2% are, and the title alone decides, not the order."""
    # The last eight bytes: the articles are sorted by the first ones, and the split must not depend on the
    # place.
    return int.from_bytes(title_hash(title)[-8:], "big") < VALIDATION_SHARE * 2**64


def _enwik8_identity(articles: Path) -> dict:
    digest = hashlib.sha256()
    n_articles = {split: 0 for split in SPLITS}
    for title, prose in read_articles(articles):
        digest.update(f"{title}\0{prose}\0".encode())
        n_articles["validation" if is_validation(title) else "train"] += 1
    return {
        "name": "enwik8",
        "md5": ENWIK8_MD5,
        "articles": n_articles,
        "articles_sha256": digest.hexdigest(),
    }


def _tokenizer(data: dict, folder: Path, texts: Callable[[str], Iterator[str]], stages: _Stages) -> Tokenizer:
    description, path = data["tokenizer"], folder / "tokenizer.json"
    if description["kind"] == "hf":
        tokenizer = load_hf(description["name"])

        def describe() -> dict:
            described = _describe(tokenizer) | {"sha256": tokenizer.sha256}
            if not data.get("stream"):
                return described
            write_text(path, tokenizer.backend.to_str())
            return described | {"unk_id": tokenizer.unk_id} | _file(path)

        stages.run("tokenizer", describe, sha256=tokenizer.sha256)
        return tokenizer

    def train() -> dict:
        with Progress("training the tokenizer", None, "tokens") as progress:
            trained = train_bpe(texts("train"), description["vocab_size"], path)
            progress.add(trained.vocab_size)
        return _describe(trained) | _file(path) | {"training_bytes": BPE_TRAINING_BYTES}

    stages.run("tokenizer", train)
    return load_bpe(path)


def _describe(tokenizer: Tokenizer) -> dict:
    return {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad_id, "eos_id": tokenizer.eos_id}


def _file(path: Path) -> dict:
    return {"file": path.name, "file_bytes": path.stat().st_size, "sha256": sha256_of(path)}


def _write_split(
    data: dict, split: str, folder: Path, texts: Callable[[str], Iterator[str]], tokenizer: Tokenizer
) -> dict:
    cap = data[f"{split}_tokens"]
    with Progress(f"tokenizing {split}", cap, "tokens") as progress:
        described, _ = write_rows(texts(split), tokenizer, data, cap, folder / f"{split}.npy", progress.add)
    if not described["rows"]:
        raise DataError(
            f"the {split} part of {data['corpus']} fills no row of {data['sequence_length']} tokens"
        )
    return described


def _file_matches(described: dict, folder: Path) -> bool:
    """Whether the files that a stage wrote, if it wrote any, are there with their sizes."""
    return all(
        (folder / file["file"]).exists() and (folder / file["file"]).stat().st_size == file["file_bytes"]
        for file in files_of(described)
    )


def _complete(meta: dict, folder: Path) -> bool:
    return all(_file_matches(part, folder) for part in (meta["tokenizer"], *meta["splits"].values()))


def _sha256_of_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
