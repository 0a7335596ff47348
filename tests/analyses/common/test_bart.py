"""BART-large without weights: what Table 12's methods train of it."""

import math

from analyses.common.bart import linear_shapes, parameter_counts
from analyses.common.published import as_printed, read_published


def test_the_counts_of_table_12_come_out_to_their_printed_digits():
    counts = parameter_counts()
    printed = read_published("table12").set_index("method").trainable.to_dict()
    assert list(printed.values()) == ["17.30M", "8.52M", "406.29M", "144.57M"]
    assert {method: as_printed(counts[method], text) for method, text in printed.items()} == printed


def test_counts_by_hand():
    """12 layers of encoder and of decoder: 4 and 8 square projections of attention, and 2 of the feed-forward network."""
    square, wide = 12 * (4 + 8), 24  # wide: as many in each direction
    assert sorted(linear_shapes()) == sorted([(1024, 1024)] * square + [(1024, 4096)] * wide + [(4096, 1024)] * wide)
    pairs = square * 2 * math.comb(512, 2) + 2 * wide * (math.comb(512, 2) + math.comb(2048, 2))
    counts = parameter_counts()
    assert counts["POET (FS, b=1/2)"] == pairs
    assert counts["LoRA (r=32)"] == 32 * (square * 2048 + 2 * wide * 5120)
    assert counts["OFT (b=64)"] == (square * 1024 + wide * 5120) * 63 // 2
