"""Claims of Tables 1 and 8 to 11, and the form of every claim about spectra, probing, errors, coverage and theory."""

import math
from dataclasses import replace

import pandas as pd
import pytest
import torch

from analyses.common.layout import write_csv
from analyses.common.published import read_published
from analyses.tables import table8, table9, table10
from analyses.tables.table1 import table1
from analyses.tables.table1.memory_formulas import FORMULAS, QUANTITIES
from analyses.tables.table11 import table11
from suite.context import Context
from suite.discovery import find
from suite.judging import WORDS, side_of
from suite.scale import load_scale
from suite.statistics import t_quantile

NAMES = ("theory", "table1", "table8", "table9", "table10", "table11")
NAMES += tuple(f"figure{n}" for n in (1, 2, 3, 4, 6, 7, *range(10, 26)))
CLAIMS = {claim.key: claim for name in NAMES for claim in find(name).claims}


@pytest.fixture
def context(tmp_path):
    return Context(load_scale({"scale": "mini", "seeds": [0]}), tmp_path)


def verdict(context, key):
    return WORDS["exact"].get(side_of(CLAIMS[key].measure(context), CLAIMS[key].region), "undecided")


def test_claims_say_what_they_are():
    for claim in CLAIMS.values():
        assert claim.says.endswith(".") and claim.rule.endswith((".", ".)")) and claim.place and claim.unit, claim.key
        low, high = claim.region
        assert low <= high and not math.isnan(low + high) and callable(claim.measure), claim.key
        assert not claim.paper_only.endswith("."), claim.key  # a reason, shown in a cell


def held(paper_agrees="yes"):
    """``results/table1.csv`` in short: POET holds two thirds of AdamW's memory."""
    lines = []
    for variant, method in read_published("table1")[["variant", "method"]].itertuples(index=False):
        for quantity in ("trainable", "total", "state"):
            for matrix in ("32 x 32", "32 x 88", table1.WHOLE):
                agrees = "" if quantity == "state" else paper_agrees if (variant, matrix) == ("poet-bs", "32 x 88") else "yes"
                inputs, outputs = (None, None) if matrix == table1.WHOLE else map(int, matrix.split(" x "))
                lines.append({"method": method, "variant": table1.ROWS[variant], "matrix": matrix, "inputs": inputs, "outputs": outputs, "quantity": QUANTITIES[quantity],
                              "published_agrees": agrees})
    return pd.DataFrame(lines)


def test_printed_formulas_hold_or_fail_line_by_line(context):
    write_csv(held(), context.results / "table1.csv")
    keys = ("table1-adamw-and-galore", "table1-poet-fs", "table1-poet-bs", "table1-less-memory-than-adamw")
    assert [verdict(context, key) for key in keys] == ["confirmed"] * 4
    both = CLAIMS["table1-adamw-and-galore"].measure(context)
    assert both.n == 2 * 2 * 2 and {spec.method for spec in both.runs} == {"adamw", "galore"}
    write_csv(held("no"), context.results / "table1.csv")
    assert [verdict(context, key) for key in keys[:3]] == ["confirmed", "confirmed", "refuted"]
    found = CLAIMS["table1-poet-bs"].measure(context)
    assert found.effect == 2 / 4 and "POET (BS) 32 x 88 trainable parameters" in found.note


def test_one_size_for_both_sides_is_counted_on_layers(context, monkeypatch):
    write_csv(held(), context.results / "table1.csv")
    found = CLAIMS["table1-poet-fs"].measure(context)
    assert (found.effect, found.n) == (1.0, 2 * 2)
    monkeypatch.setattr(table1.torch.optim, "AdamW", torch.optim.SGD)  # no moments: the memory is another
    assert CLAIMS["table1-poet-fs"].measure(context).effect == 0.5


def test_one_variant_that_needs_as_much_memory_is_enough(context, monkeypatch):
    found = CLAIMS["table1-less-memory-than-adamw"].measure(context)
    square, wide = 512 * 512, 512 * 1280
    blocks = 8 * (4 * (square + 3 * 1024 * 63 // 2) + 3 * (wide + 3 * 1792 * 63 // 2))
    assert found.effect == pytest.approx(blocks / (3 * 8 * (4 * square + 3 * wide))) and "poet-fs-1_8 0.35" in found.note
    greedy = replace(FORMULAS["poet-bs"], state=lambda m, n, p: 2 * m * n)
    monkeypatch.setitem(FORMULAS, "poet-bs", greedy)
    assert verdict(context, "table1-less-memory-than-adamw") == "refuted"


def test_a_model_that_is_not_merged_is_another_one_at_inference(context, monkeypatch):
    assert verdict(context, "table1-same-model-for-inference") == "confirmed"
    method = table1.get_method("poet")
    monkeypatch.setattr(method, "export", lambda self, model: model)
    assert verdict(context, "table1-same-model-for-inference") == "refuted"


def test_printed_cells_are_counted(context):
    for table in (table8, table9, table10):
        table.ARTIFACT.build(context)
    keys = ("table8-cells", "table8-divisible", "table9-cells", "table10-cells")
    assert [verdict(context, key) for key in keys] == ["confirmed", "confirmed", "refuted", "confirmed"]
    found = CLAIMS["table9-cells"].measure(context)
    assert (found.effect, found.n) == (69 / 72, 72) and found.note.startswith("not so: 130m b=1/2 batch size; 130m b=1/4")
    assert [CLAIMS[f"{name}-cells"].measure(context).n for name in ("table8", "table10")] == [16, 72]


def test_a_dimension_that_a_block_size_does_not_divide_is_enough(context, monkeypatch):
    printed = read_published("table8").replace("5376", "5464")
    monkeypatch.setattr(table8, "read_published", lambda name: printed if name == "table8" else read_published(name))
    assert verdict(context, "table8-divisible") == "refuted"


def timed(**medians):
    """``results/table11.csv`` in short, with intervals of 0.1 either side; of two numbers, one for each variant."""
    printed = {"neumann": "Neumann approximation", "kernel": "Skew-symmetric CUDA kernel", "total": "Total"}
    return pd.DataFrame([
        {"variant": variant, "quantity": printed[name], "measured": value, "std": 0.1 / math.sqrt(math.pi / 2) * math.sqrt(5) / t_quantile(5), "n": 5,
         "device": "CPU"}
        for name, values in medians.items()
        for variant, value in zip(("FS", "BS"), values, strict=True)
    ])


def test_speed_ups_are_judged_by_the_intervals_of_both_variants(context):
    write_csv(timed(neumann=(1.2, 1.5), kernel=(0.7, 0.8), total=(0.95, 2.0)), context.results / "table11.csv")
    keys = ("table11-neumann-is-faster", "table11-kernel-is-faster", "table11-all-is-faster")
    assert [verdict(context, key) for key in keys] == ["confirmed", "refuted", "undecided"]
    found = CLAIMS["table11-neumann-is-faster"].measure(context)
    assert (found.effect, found.low, found.high, found.n) == pytest.approx((1.35, 1.1, 1.6, 5))
    assert "FS and BS together; CPU: a proxy, which says nothing of H100s" in found.note


def test_printed_speed_ups_may_be_of_either_variant(context):
    write_csv(timed(neumann=(1.0, 1.52), kernel=(1.3, 5.0), total=(3.8, 3.8)), context.results / "table11.csv")
    assert verdict(context, "table11-values") == "confirmed" and table11.CLAIMS[-1].paper_only
    write_csv(timed(neumann=(1.0, 1.52), kernel=(1.3, 5.0), total=(3.6, 3.9)), context.results / "table11.csv")
    assert CLAIMS["table11-values"].measure(context).effect == pytest.approx(2 / 3)
