"""Packing and padding against the plainest possible code, and against the cut of a Hugging Face tokenizer."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poet.data.packing import pack, pad, row_dtype

TOKENIZER = SimpleNamespace(vocab_size=100, pad_id=0, eos_id=1)


class Document:
    """Stands in for EncodedText: each token covers three bytes."""

    def __init__(self, ids):
        self.ids = np.array(ids, np.int64)

    def bytes_of_first(self, n):
        return 3 * min(n, len(self.ids))


documents = st.lists(st.lists(st.integers(3, 99), max_size=30), max_size=12)
caps = st.one_of(st.none(), st.integers(0, 120))


@settings(max_examples=200, deadline=None)
@given(documents, st.integers(2, 9), caps)
def test_pack_is_one_stream_cut_into_rows(texts, length, cap):
    stream = [token for text in texts for token in [*text, 1]]
    n_rows = min(len(stream), len(stream) if cap is None else cap) // length
    blocks = list(pack(map(Document, texts), TOKENIZER, length, cap))
    rows = [row for block, _, _ in blocks for row in block.tolist()]
    kept = stream[: n_rows * length]
    assert rows == [kept[i : i + length] for i in range(0, len(kept), length)]
    assert sum(n for _, n, _ in blocks) == len(kept)
    assert sum(n for _, _, n in blocks) == 3 * sum(token != 1 for token in kept)


@settings(max_examples=200, deadline=None)
@given(documents, st.integers(2, 9), caps)
def test_pad_is_one_document_a_row(texts, length, cap):
    expected, total = [], 0
    for text in texts:
        row = [*text[: length - 1], 1]
        total += len(row)
        if cap is not None and total > cap:
            break
        expected.append(row)
    blocks = list(pad(map(Document, texts), TOKENIZER, length, cap))
    assert [block[0].tolist() for block, _, _ in blocks] == [
        row + [0] * (length - len(row)) for row in expected
    ]
    assert [n for _, n, _ in blocks] == [len(row) for row in expected]
    assert [n for _, _, n in blocks] == [3 * (len(row) - 1) for row in expected]


@pytest.mark.parametrize(("vocab_size", "dtype"), [(1024, "uint16"), (65536, "uint16"), (65537, "uint32")])
def test_dtype_holds_the_vocabulary(vocab_size, dtype):
    assert row_dtype(vocab_size) == dtype
