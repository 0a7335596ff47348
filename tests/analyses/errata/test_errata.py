"""Errata: every verdict follows from its numbers, the numbers are right, and none outlives what it was computed from."""

import math

import pandas as pd
import pytest
import torch

from analyses.common.published import printed_cell, read_published
from analyses.errata import errata
from analyses.errata.orthogonality import _skew
from analyses.errata.erratum import VERDICTS, printed
from suite.context import Context
from suite.scale import load_scale

#: The list that the work began with (facts.md), by entry; Equation (1)'s double sum is among what proved right.
SUSPECTED = (
    "merge-period", "neumann-table-130m", "twice-or-triple", "variance-of-probing", "second-moment-of-probing",
    "entropy-sign", "frobenius-norm", "energy-counts-pairs-twice", "batch-130m", "block-models-differ",
    "rouge-l-columns", "galore-1.3b", "count-118-26",
)
KINDS = {
    "arithmetic", "claim too general", "contradiction", "gap in a proof", "missing or wrong reference", "notation",
    "text against figure", "text against table", "typo in a formula", "unequal comparison", "unexplained choice",
}
QUOTATION_WORDS = 12


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    errata.ARTIFACT.build(Context(load_scale({"scale": "smoke", "seeds": [0]}), folder))
    return folder


@pytest.fixture(scope="module")
def frame(results):
    return pd.read_csv(results / "errata.csv", keep_default_na=False, na_values=[""]).set_index("id")


def entry(name):
    return next(e for e in errata.ERRATA if e.id == name)


def test_the_list_is_whole_and_in_order_of_the_verdicts(frame):
    assert frame.index.is_unique and len(frame) == len(errata.ERRATA)
    assert set(SUSPECTED) <= set(frame.index)
    assert list(dict.fromkeys(frame.verdict)) == list(VERDICTS)
    assert set(frame.kind) <= KINDS
    assert (frame.scale == "any").all()


def test_a_computation_fills_its_columns_and_a_quotation_leaves_them_empty(frame):
    computed = frame.check == "computation"
    assert computed.sum() > len(frame) / 2
    assert frame[computed][["measured", "n", "unit"]].notna().all().all()
    assert frame[~computed][["published", "measured", "n", "unit"]].isna().all().all()


def test_sentences_have_their_numbers_and_quotations_are_short(frame):
    sentences = frame.explanation + frame.consequence
    assert not sentences.str.contains(r"\bnan\b", regex=True).any()
    for column in ("quotation", "second_quotation"):
        assert (frame[column].fillna("").str.split().str.len() <= QUOTATION_WORDS).all()


def test_the_readable_list_counts_what_the_table_has(results, frame):
    text = (results / "errata.md").read_text()
    assert text.count("\n- **") == len(frame)
    for verdict, count in frame.verdict.value_counts().items():
        assert f"## {verdict.capitalize()} ({count})" in text and f"{count} {verdict}" in text


def test_published_numbers_belong_to_entries_and_are_read():
    rows = read_published("errata")
    assert set(rows.erratum) <= {e.id for e in errata.ERRATA}
    assert not rows.duplicated(["erratum", "quantity"]).any()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("speed-up-factors", {"Total": 1.95}),
        ("glue-not-all-tasks", {("table4", "STS-B", "Full FT", "POET"): 0.881}),
        ("glue-oft-worse", {("table4", task, "OFT", "AdamW"): 0.3 for task in ("CoLA", "MNLI")}),
        ("glue-majority-class", {"RTE, majority": 180}),
        ("glue-majority-class", {("table4", "RTE", "OFT", "POET"): 0.661}),
        ("rouge-l-columns", {("table12", "CNN/DailyMail ROUGE-L", row): 40.0 for row in ("LoRA (r=32)", "OFT (b=64)")}),
        ("rows-of-other-papers", {"Full FT, XSum ROUGE-1": 45.15}),
        ("rows-of-other-papers", {("table12", "CNN/DailyMail ROUGE-2", "OFT (b=64)"): 21.03}),
        ("rows-of-other-papers", {("table12", "XSum ROUGE-L", "POET (FS, b=1/2)"): 37.25}),
        ("galore-1.3b", {"ReLoRA": 18.34}),
        ("token-counts", {"350m": 45e9}),
        ("batch-130m", {"130m": 20e9}),
        ("nearly-six-million", {"fewer": 6.3e6}),
        ("tokens-of-3b", {"tokens": 6e9}),
        ("one-tenth", {"share": 0.2}),
        ("merge-period", {("table2", "perplexity", "60m", "poet-fs-1_2"): 25.31}),  # the value of T_m = 400
    ],
)
def test_a_verdict_does_not_outlive_the_numbers_it_was_written_for(name, change, monkeypatch):
    """Changes are of cells of printed tables (table, column, row) and of numbers that are an entry's own (by name)."""

    def changed_cell(table, column, **where):
        return change.get((table, column, *where.values()), printed_cell(table, column, **where))

    compute = entry(name).compute.__globals__
    monkeypatch.setitem(compute, "printed", lambda key: printed(key) | change)
    monkeypatch.setitem(compute, "printed_cell", changed_cell)
    with pytest.raises(ValueError, match=f"erratum {name}: .* does not follow"):
        entry(name).line()


def test_a_printed_cell_is_one_cell():
    assert printed_cell("table2", "perplexity", model="60m", variant="adamw") == 26.68
    for where in ({"model": "60m"}, {"model": "7b"}):
        with pytest.raises(ValueError, match="table2.csv"):
            printed_cell("table2", "perplexity", **where)


# --- computations against numbers that were worked out another way ----------------------------------------------------


def test_share_of_r_by_hand(frame):
    def pairs(b):
        return math.comb(b, 2)

    square, side, wide = pairs(64), pairs(512 // 8), pairs(1376 // 8)
    r = 4 * square + 2 * side + wide
    assert frame.measured["half-is-not-standard"] == pytest.approx(r / (r + 4 * square + 2 * wide + side))


def test_counts_by_hand(frame):
    linear = 8 * (4 * 512**2 + 3 * 512 * 1376)
    assert frame.measured["what-is-counted"] * 1e6 == linear + 2 * 32000 * 512 + 17 * 512
    assert frame.measured["block-models-differ"] == pytest.approx(8 * (4 * 512**2 + 3 * 512 * 1280) / linear - 1)
    assert frame.measured["count-118-26"] * 1e6 == 24 * (8 * 2048 + 3 * (2048 + 5376)) * 255 / 2
    assert frame.measured["batch-130m"] == pytest.approx(400_000 * 256 * 256 / 1e9)


def test_orderings_that_the_paper_does_not_expect(frame):
    assert frame.measured["error-not-monotone"] > 10
    assert frame.measured["no-terms-diverge"] == pytest.approx(0.5, abs=0.02)


def test_merging_in_parts_by_hand(frame):
    """The series with k = 3 multiplies the singular values of a pair of angles by 1 - t^4, t of Q as _skew draws it."""
    ts = torch.linalg.eigvals(_skew(32, 0.5)).imag.abs()
    drift = lambda t: float(torch.log1p(-(t**4)).mean())  # noqa: E731
    assert frame.measured["merges-accumulate-error"] == pytest.approx(drift(ts) / (10 * drift(ts / 10)), rel=1e-6)


def test_singular_values_at_the_plateau_by_hand(frame):
    assert frame.measured["spectrum-not-exact"] == pytest.approx(1 - (1 - math.sqrt((0.6 + 0.65) / 2)) ** 2)


def test_pair_probability_by_counting(frame):
    """Sets of 64 out of 512 that hold two given coordinates, out of all sets."""
    p = math.comb(510, 62) / math.comb(512, 64)
    draws = math.ceil(3 * math.log(512) * 64)
    assert frame.measured["pair-probability"] == pytest.approx((1 - p) ** draws, rel=1e-9)
    assert frame.published["pair-probability"] == pytest.approx(512**-3)


def test_probing_without_merges_by_hand(frame):
    square = 1 - math.sqrt((0.6 + 0.65) / 2)  # (1 - t^2)^2 = v'Rv
    assert frame.measured["probing-without-merges"] == pytest.approx(1 - (1 - square**2) ** 2)


def test_the_first_step_after_a_merge_by_hand(frame):
    """Adam's first step is g / (|g| + eps); R and P of 60M by hand, and embeddings, head and norms."""
    assert frame.measured["where-eps-stands"] == pytest.approx(1e-6 / math.sqrt(0.001))
    trained = 8 * (4 * 2 * math.comb(256, 2) + 3 * (math.comb(256, 2) + math.comb(688, 2))) + 2 * 32000 * 512 + 17 * 512
    gradient = 0.1 * 0.1 / math.sqrt(trained)
    share = (gradient + 1e-6) / (gradient + 1e-6 / math.sqrt(0.001))
    assert f"the first step after a merge is {share:.0%} as long" in frame.explanation["where-eps-stands"]


def test_tables_against_their_own_cells(frame):
    assert (frame.measured["glue-not-all-tasks"], frame.published["glue-not-all-tasks"]) == (23, 24)
    assert frame.measured["glue-oft-worse"] == 5
    assert frame.measured["glue-majority-class"] == 5  # 0.696, 0.689 / 0.534, 0.531, 0.538; 0.740 is 2.4 errors away
    assert (frame.measured["rows-of-other-papers"], frame.published["rows-of-other-papers"]) == (18, 18)
    assert frame.measured["nearly-six-million"] == pytest.approx(6.23)
    assert frame.measured["length-of-phase-two"] == pytest.approx((233 - 58) / 300, abs=2e-3)
    assert frame.measured["twice-or-triple"] == pytest.approx(2.8)
