"""From documents of tokens to rows of one length."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from poet.data.tokenizer import EncodedText, Tokenizer

# One row or several: (tokens (rows, T), number of tokens that are not padding, bytes of text that they cover).
Block = tuple[np.ndarray, int, int]


def row_dtype(vocab_size: int) -> np.dtype:
    """The smallest of uint16 and uint32 that holds every token; little-endian on every machine."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


def pack(documents: Iterable[EncodedText], tokenizer: Tokenizer, length: int, cap: int | None = None) -> Iterator[Block]:
    """Blocks of rows cut from one stream of tokens, an end-of-sequence token after each document.

    Tokens at the end that fill no row are dropped.

    Args:
        documents, tokenizer: the encoded documents and their tokenizer.
        length: tokens a row.
        cap: at most this many tokens, in full rows; None for no limit.

    Yields:
        A :data:`Block` of rows.
    """
    dtype = row_dtype(tokenizer.vocab_size)
    rows_left = math.inf if cap is None else cap // length
    rest, rest_bytes = np.empty(0, dtype), 0
    for document in documents:
        if rows_left == 0:
            return
        stream = np.concatenate([rest, document.ids.astype(dtype), np.array([tokenizer.eos_id], dtype)])
        n_rows = min(len(stream) // length, rows_left)
        rows_left -= n_rows
        if n_rows == 0:
            rest, rest_bytes = stream, rest_bytes + document.bytes_of_first(len(document.ids))
            continue
        of_document = n_rows * length - len(rest)
        n_bytes = document.bytes_of_first(of_document)
        yield stream[: n_rows * length].reshape(n_rows, length), n_rows * length, rest_bytes + n_bytes
        rest = stream[n_rows * length :]
        rest_bytes = document.bytes_of_first(len(document.ids)) - n_bytes


def pad(documents: Iterable[EncodedText], tokenizer: Tokenizer, length: int, cap: int | None = None) -> Iterator[Block]:
    """One row per document: its first T - 1 tokens at most, an end-of-sequence token, then padding.

    A document that is cut has an end-of-sequence token too, as with the T5 tokenizer. The paper does not say how its rows are made; see docs/data.md.

    Args:
        documents, tokenizer: the encoded documents and their tokenizer.
        length: T, tokens a row.
        cap: rows end before their tokens without padding exceed this number; None for no limit.

    Yields:
        A :data:`Block` of one row.
    """
    dtype = row_dtype(tokenizer.vocab_size)
    total = 0
    for document in documents:
        kept = min(len(document.ids), length - 1)
        total += kept + 1
        if cap is not None and total > cap:
            return
        row = np.full((1, length), tokenizer.pad_id, dtype)
        row[0, :kept] = document.ids[:kept]
        row[0, kept] = tokenizer.eos_id
        yield row, kept + 1, document.bytes_of_first(kept)


PACKINGS = {"pack": pack, "pad": pad}
