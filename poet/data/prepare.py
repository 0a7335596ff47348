"""From the description of a data set to a folder of rows: fetch, clean, split, train the tokenizer, tokenize,
pack.

Each stage leaves a complete file and a note in `stages.json`, so that an interrupted preparation goes on
where it stopped; `meta.json` is written last and says that the folder is complete.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from poet.data.c4 import c4_documents, c4_identity
from poet.data.corpora import ENWIK8_MD5, enwik8_articles, read_articles, title_hash
from poet.data.description import check_description
from poet.data.errors import DataError
from poet.data.files import exclusive, read_json, sha256_of, write_json
from poet.files import atomic_path
from poet.data.npy import RowWriter
from poet.data.packing import PACKINGS, row_dtype
from poet.progress import Progress
from poet.data.tokenizer import BPE_TRAINING_BYTES, Tokenizer, load_bpe, load_hf, train_bpe
from poet.data.wikitext import CLEANER_VERSION

# Raise this whenever equal descriptions give other rows or another meta.json than before.
FORMAT_VERSION = 1
SPLITS = ("train", "validation")
VALIDATION_SHARE = 0.02  # of the articles of enwik8; C4 brings its own split


def prepare(data: dict, folder: Path, cache: Path) -> dict:
    """Makes `<folder>/{train,validation}.npy`, `tokenizer.json` (BPE) and `meta.json`, and returns the
    latter.

    data: `{"corpus": "enwik8" | "c4", "path": folder of C4 shards or None for the hub, "tokenizer":
    {"kind": "bpe", "vocab_size": int} | {"kind": "hf", "name": str}, "sequence_length": int,
    "packing": "pack" | "pad", "train_tokens": int | None, "validation_tokens": int | None}`; the last two cap
    the tokens that are no padding.
    Rows are (rows, sequence_length), uint16, or uint32 where the vocabulary needs it. Does nothing where the
    folder holds this very data set. Raises DataError for whatever the user can put right.
    """
    data, folder, cache = check_description(data), Path(folder), Path(cache)
    wanted = {"data": data, "versions": {"format": FORMAT_VERSION, "cleaner": CLEANER_VERSION}}
    with exclusive(folder):
        meta = read_json(folder / "meta.json")
        if meta and all(meta.get(key) == value for key, value in wanted.items()) and _complete(meta, folder):
            return meta
        # From here on the folder is not complete; a reader that finds no meta.json says so.
        (folder / "meta.json").unlink(missing_ok=True)
        stages = _Stages(folder, wanted)
        documents = _enwik8_documents(cache) if data["corpus"] == "enwik8" else _c4_documents(data["path"])
        stages.run("corpus", lambda: _corpus_identity(data, cache))
        tokenizer = _tokenizer(data["tokenizer"], folder, documents, stages)
        for split in SPLITS:
            stages.run(split, lambda split=split: _write_rows(data, split, folder, documents, tokenizer))
        meta = wanted | {
            "corpus": stages.done["corpus"],
            "tokenizer": stages.done["tokenizer"],
            "sequence_length": data["sequence_length"],
            "splits": {split: stages.done[split] for split in SPLITS},
        }
        write_json(folder / "meta.json", meta)
        stages.forget()
    return meta


class _Stages:
    """The stages that are done, and what each found, kept in `<folder>/stages.json` until all are."""

    def __init__(self, folder: Path, wanted: dict):
        self._path, self._folder, self._wanted = folder / "stages.json", folder, wanted
        saved = read_json(self._path)
        ours = saved and all(saved.get(key) == value for key, value in wanted.items())
        self.done: dict[str, dict] = saved["done"] if ours else {}
        self._remade = False

    def run(self, name: str, work: Callable[[], dict]) -> None:
        """Runs `work` unless it is done; once one stage is remade, all that follow are."""
        if not self._remade and name in self.done and _file_matches(self.done[name], self._folder):
            return
        self._remade = True
        self.done[name] = work()
        write_json(self._path, self._wanted | {"done": self.done})

    def forget(self) -> None:
        self._path.unlink()


def is_validation(title: str) -> bool:
    """Whether an article of enwik8 is held out: about 2% are, and the title alone decides, not the order."""
    # The last eight bytes: the articles are sorted by the first ones, and the split must not depend on the
    # place.
    return int.from_bytes(title_hash(title)[-8:], "big") < VALIDATION_SHARE * 2**64


def _enwik8_documents(cache: Path) -> Callable[[str], Iterator[str]]:
    path = enwik8_articles(cache)

    def documents(split: str) -> Iterator[str]:
        return (
            prose for title, prose in read_articles(path) if is_validation(title) == (split == "validation")
        )

    return documents


def _c4_documents(path: str | None) -> Callable[[str], Iterator[str]]:
    return lambda split: c4_documents(path, split)


def _corpus_identity(data: dict, cache: Path) -> dict:
    if data["corpus"] == "c4":
        return c4_identity(data["path"])
    digest = hashlib.sha256()
    n_articles = {split: 0 for split in SPLITS}
    for title, prose in read_articles(enwik8_articles(cache)):
        digest.update(f"{title}\0{prose}\0".encode())
        n_articles["validation" if is_validation(title) else "train"] += 1
    return {
        "name": "enwik8",
        "md5": ENWIK8_MD5,
        "articles": n_articles,
        "articles_sha256": digest.hexdigest(),
    }


def _tokenizer(
    description: dict, folder: Path, documents: Callable[[str], Iterator[str]], stages: _Stages
) -> Tokenizer:
    if description["kind"] == "hf":
        tokenizer = load_hf(description["name"])
        stages.run(
            "tokenizer",
            lambda: _describe(tokenizer) | {"sha256": _sha256_of_text(tokenizer.backend.to_str())},
        )
        return tokenizer
    path = folder / "tokenizer.json"

    def train() -> dict:
        with Progress("training the tokenizer", None, "tokens") as progress:
            trained = train_bpe(documents("train"), description["vocab_size"], path)
            progress.add(trained.vocab_size)
        file = {"file": path.name, "file_bytes": path.stat().st_size, "sha256": sha256_of(path)}
        return _describe(trained) | file | {"training_bytes": BPE_TRAINING_BYTES}

    stages.run("tokenizer", train)
    return load_bpe(path)


def _describe(tokenizer: Tokenizer) -> dict:
    return {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad_id, "eos_id": tokenizer.eos_id}


def _write_rows(
    data: dict, split: str, folder: Path, documents: Callable[[str], Iterator[str]], tokenizer: Tokenizer
) -> dict:
    path, cap = folder / f"{split}.npy", data[f"{split}_tokens"]
    n_tokens = n_bytes = 0
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        writer = RowWriter(file, data["sequence_length"], row_dtype(tokenizer.vocab_size))
        encoded = tokenizer.encode_documents(documents(split))
        with Progress(f"tokenizing {split}", cap, "tokens") as progress:
            blocks = PACKINGS[data["packing"]](encoded, tokenizer, data["sequence_length"], cap)
            for rows, not_padding, text_bytes in blocks:
                writer.append(rows)
                n_tokens += not_padding
                n_bytes += text_bytes
                progress.add(not_padding)
        if not writer.rows:
            raise DataError(
                f"the {split} part of {data['corpus']} fills no row of {data['sequence_length']} tokens"
            )
        writer.finish()
    return {
        "file": path.name,
        "file_bytes": path.stat().st_size,
        "sha256": sha256_of(path),
        "rows": writer.rows,
        "tokens": writer.rows * data["sequence_length"],
        "tokens_without_padding": n_tokens,
        "text_bytes": n_bytes,
    }


def _file_matches(described: dict, folder: Path) -> bool:
    """Whether the file that a stage wrote, if it wrote one, is there with its size."""
    if "file" not in described:
        return True
    path = folder / described["file"]
    return path.exists() and path.stat().st_size == described["file_bytes"]


def _complete(meta: dict, folder: Path) -> bool:
    return all(_file_matches(part, folder) for part in (meta["tokenizer"], *meta["splits"].values()))


def _sha256_of_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
