"""Writes one file of rows from a stream of texts."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from poet.data.files import sha256_of
from poet.data.npy import RowWriter
from poet.data.packing import PACKINGS, row_dtype
from poet.data.tokenizer import EncodedText, Tokenizer
from poet.system.files import atomic_path


def write_rows(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    data: dict,
    cap: int | None,
    path: Path,
    count: Callable[[int], None] = lambda tokens: None,
) -> tuple[dict, bool]:
    """Makes `path` (.npy) of `texts`, atomically; returns what it holds, and whether that is all of the texts.

    data: the description, of which `packing` and `sequence_length` are read. cap: at most this many tokens that are
    no padding. count: called with the tokens of each block of rows as it is written.
    """
    length, all_read = data["sequence_length"], []
    n_tokens = n_bytes = 0

    def to_the_end(documents: Iterable[EncodedText]) -> Iterator[EncodedText]:
        yield from documents
        all_read.append(True)

    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        writer = RowWriter(file, length, row_dtype(tokenizer.vocab_size))
        documents = to_the_end(encoded(texts, tokenizer, data))
        for rows, not_padding, text_bytes in PACKINGS[data["packing"]](documents, tokenizer, length, cap):
            writer.append(rows)
            n_tokens += not_padding
            n_bytes += text_bytes
            count(not_padding)
        writer.finish()
    described = {
        "file": path.name,
        "file_bytes": path.stat().st_size,
        "sha256": sha256_of(path),
        "rows": writer.rows,
        "tokens": writer.rows * length,
        "tokens_without_padding": n_tokens,
        "text_bytes": n_bytes,
    }
    return described, bool(all_read)


def encoded(texts: Iterable[str], tokenizer: Tokenizer, data: dict) -> Iterator[EncodedText]:
    """The texts as tokens, as many of each as its rows need: a padded row is one document's, and ends it."""
    needed = data["sequence_length"] - 1 if data["packing"] == "pad" else None
    return tokenizer.encode_documents(texts, needed)
