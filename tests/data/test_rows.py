"""Reading: batches, masked padding, and the order that every method shares."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from poet.data.errors import DataError
from poet.data.order import BatchOrder, epoch_order
from poet.data.rows import TokenRows


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "train.npy", np.array([[5, 6, 1, 0], [7, 8, 9, 1], [2, 1, 0, 0]], np.uint16))
    meta = {
        "sequence_length": 4,
        "tokenizer": {"vocab_size": 10, "pad_id": 0},
        "splits": {"train": {"rows": 3, "sha256": "abc"}},
    }
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    return tmp_path


def test_batch_and_labels(folder):
    rows = TokenRows(folder, "train")
    batch = rows.batch(np.array([2, 0]))
    assert (len(rows), rows.sequence_length, rows.vocab_size, rows.pad_id) == (3, 4, 10, 0)
    assert batch.dtype == torch.int64 and batch.tolist() == [[2, 1, 0, 0], [5, 6, 1, 0]]
    assert rows.labels(batch).tolist() == [[2, 1, -100, -100], [5, 6, 1, -100]]
    assert batch.tolist() == [[2, 1, 0, 0], [5, 6, 1, 0]]  # labels are a copy


@pytest.mark.parametrize("harm", ["no meta", "no rows", "wrong shape", "unknown split"])
def test_a_folder_that_is_not_whole_is_refused(folder, harm):
    if harm == "no meta":
        (folder / "meta.json").unlink()
    elif harm == "no rows":
        (folder / "train.npy").unlink()
    elif harm == "wrong shape":
        np.save(folder / "train.npy", np.zeros((2, 4), np.uint16))
    with pytest.raises(DataError):
        TokenRows(folder, "test" if harm == "unknown split" else "train")


@settings(max_examples=50, deadline=None)
@given(n_rows=st.integers(1, 40), batch_rows=st.integers(1, 60), seed=st.integers(0, 5))
def test_each_epoch_reads_every_row_once(n_rows, batch_rows, seed):
    order = BatchOrder(n_rows, batch_rows, seed)
    n_steps = -(-3 * n_rows // batch_rows)
    read = np.concatenate([order.indices(step) for step in range(n_steps)])[: 3 * n_rows]
    for epoch, part in enumerate(read.reshape(3, n_rows)):
        assert sorted(part) == list(range(n_rows))
        assert np.array_equal(part, epoch_order(n_rows, seed, epoch))


def test_order_needs_no_state_and_differs_by_seed_and_epoch():
    order = BatchOrder(50, 8, 0)
    forwards = [order.indices(step).tolist() for step in range(20)]
    assert [BatchOrder(50, 8, 0).indices(step).tolist() for step in range(20)] == forwards
    assert [order.indices(step).tolist() for step in reversed(range(20))] == forwards[::-1]
    assert BatchOrder(50, 8, 1).indices(0).tolist() != forwards[0]
    assert epoch_order(50, 0, 0).tolist() != epoch_order(50, 0, 1).tolist()


def test_order_is_the_same_on_every_machine():
    assert epoch_order(8, 3, 1).tolist() == [2, 1, 4, 0, 5, 7, 6, 3]


def test_reading_imports_no_tokenizer_library():
    code = (
        "import sys, poet.data.rows\n"
        "print([m for m in ('datasets', 'transformers', 'tokenizers') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [(0, 1, 0), (1, 0, 0)])
def test_empty_orders_are_refused(arguments):
    with pytest.raises(ValueError):
        BatchOrder(*arguments)
