"""Writes one file of rows from a stream of texts."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from poet.data.files import described_file
from poet.data.packing import PACKINGS, row_dtype
from poet.data.tokenizer import EncodedText, Tokenizer
from poet.system.files import atomic_path

_HEADER_BYTES = 128


def write_rows(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    data: dict,
    cap: int | None,
    path: Path,
    count: Callable[[int], None] = lambda tokens: None,
) -> tuple[dict, bool]:
    """Writes the rows of ``texts`` to ``path`` (.npy), atomically; returns their part of ``meta.json``, and whether all texts were read.

    Args:
        texts, tokenizer: the documents and their tokenizer.
        data: the description, of which ``packing`` and ``sequence_length`` are read.
        cap: at most this many tokens without padding; None for no limit.
        count: called with the tokens without padding of each block of rows as it is written.
    """
    length, dtype, all_read = data["sequence_length"], row_dtype(tokenizer.vocab_size), []
    n_rows = n_tokens = n_bytes = 0

    def to_the_end(documents: Iterable[EncodedText]) -> Iterator[EncodedText]:
        yield from documents
        all_read.append(True)

    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(bytes(_HEADER_BYTES))
        documents = to_the_end(encoded(texts, tokenizer, data))
        for rows, not_padding, text_bytes in PACKINGS[data["packing"]](documents, tokenizer, length, cap):
            file.write(np.ascontiguousarray(rows, dtype).data)
            n_rows, n_tokens, n_bytes = n_rows + len(rows), n_tokens + not_padding, n_bytes + text_bytes
            count(not_padding)
        file.seek(0)
        file.write(_npy_header(dtype, (n_rows, length)))
    described = described_file(path) | {
        "rows": n_rows,
        "tokens": n_rows * length,
        "tokens_without_padding": n_tokens,
        "text_bytes": n_bytes,
    }
    return described, bool(all_read)


def encoded(texts: Iterable[str], tokenizer: Tokenizer, data: dict) -> Iterator[EncodedText]:
    """The encoded texts; with packing "pad", only the start of a long text, because it gives one row."""
    needed = data["sequence_length"] - 1 if data["packing"] == "pad" else None
    return tokenizer.encode_documents(texts, needed)


def _npy_header(dtype: np.dtype, shape: tuple[int, int]) -> bytes:
    """The header, version 1.0. ``numpy.lib.format`` pads it differently, which would change every checksum of rows."""
    magic = np.lib.format.magic(1, 0)
    n_text = _HEADER_BYTES - len(magic) - 2
    fields = repr({"descr": dtype.str, "fortran_order": False, "shape": shape})
    return magic + n_text.to_bytes(2, "little") + fields.encode("ascii").ljust(n_text - 1) + b"\n"
