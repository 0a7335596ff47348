"""Table 2: the counts, directions beside AdamW, and what its rows are."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from analyses.common.grid import MODELS, grid_runs
from analyses.common.published import as_printed, printed_number, read_published
from analyses.tables.table2 import table2
from analyses.tables.table2.claims import LIKE_LORA
from analyses.tables.table2.counts import KNOWN_COUNT_DIFFERENCES, paper_counts
from analyses.tables.table2.rows import LORA, POET, printed
from analyses.tables.table2.table2 import apart_from_zero, beside_adamw, draw, summary
from poet.methods import table_rows
from poet.training.errors import RunError
from suite.claim import Evidence
from suite.scale import ROOT, load_scale
from tests.analyses.legibility import error_bars, problems


@pytest.fixture(scope="module")
def counts():
    return paper_counts()


def test_35_of_36_printed_counts_come_out_of_the_models(counts):
    printed = {(p.model, p.variant): p.trainable for p in read_published("table2").itertuples()}
    assert len(printed) == 36
    different = {key: as_printed(counts[key], value) for key, value in printed.items()
                 if as_printed(counts[key], value) != value}
    assert different == {("1.3b", "poet-bs-b256"): "118.29M"}
    assert set(different) == set(KNOWN_COUNT_DIFFERENCES)


def test_the_explanation_of_the_36th_count_holds():
    def count(b, d_ff):
        return 24 * (4 * 2 * 2048 + 3 * (2048 + d_ff)) * (b - 1) / 2

    assert as_printed(count(256, 5376), "1.00M") == "118.29M"
    assert as_printed(count(64, 5376), "1.00M") == "29.22M"
    assert as_printed(count(128, 5376), "1.00M") == "58.91M"
    assert all(as_printed(count(b, 5376), "1.00M") != "118.26M" for b in range(2, 2049))
    assert all(as_printed(count(256, 256 * k), "1.00M") != "118.26M" for k in range(1, 64))


@pytest.mark.parametrize("text", ["25.30M", "1.21B", "0.53M", "302.38M"])
def test_a_printed_number_survives_reading_and_printing(text):
    assert as_printed(printed_number(text), text) == text


def test_a_direction_is_the_sign_and_its_interval_is_paired():
    baseline = [50.0, 60.0, 70.0]
    found = beside_adamw(-1.4, [48.0, 57.9, 68.1], baseline)
    assert found["direction"] == "as published" and found["measured_difference"] == pytest.approx(-2.0)
    assert found["difference_low"] < -2.0 < found["difference_high"] < 0 and apart_from_zero(SimpleNamespace(**found))
    assert beside_adamw(-1.4, [52.0, 62.1, 71.9], baseline)["direction"] == "opposite"
    assert not apart_from_zero(SimpleNamespace(**beside_adamw(-1.4, [48.0, 62.1, 69.0], baseline)))
    assert beside_adamw(None, [48.0, 57.9, 68.1], baseline)["direction"] == ""
    one = beside_adamw(-1.4, [80.0], [100.0])
    assert one["direction"] == "as published" and not apart_from_zero(SimpleNamespace(**one))


def test_what_diverged_has_no_direction():
    baseline = [math.nan]
    for values, reference in (([48.0], baseline), (baseline, baseline), (baseline, [50.0])):
        found = beside_adamw(-1.4, values, reference)
        assert found["direction"] == "" and math.isnan(found["difference_low"])


def test_the_summary_has_the_rank_agreement_of_each_model_with_its_p_value():
    cells = {"model": "60m", "direction": ["", "opposite"], "difference_low": -1.0, "difference_high": 1.0, "trainable_agrees": "yes"}
    cells["learning_rates_from"] = "table.csv (60m)"
    agreements = {"60m": Evidence(effect=0.5, low=math.nan, high=math.nan, p=0.02, n=3, note="9 rows")}
    lines = summary(pd.DataFrame({**cells, "scale": "mini"}), agreements)
    assert "60m: rank agreement with the paper (9 rows), Kendall's tau 0.50 (permutation p = 0.02, 3 seeds)." in lines
    assert lines[0].startswith("Against AdamW on the same model, 0 of 1 cells stand on the side that the paper prints.")


def test_the_summary_counts_sides_and_intervals_beside_zero():
    ends = {"difference_low": [-2.0, -1.0], "difference_high": [-1.0, 1.0]}
    cells = {"model": "60m", "direction": ["as published", "opposite"], **ends, "trainable_agrees": "yes", "learning_rates_from": "table.csv (60m)"}
    (line, *_) = summary(pd.DataFrame({**cells, "scale": "mini"}), {})
    assert "1 of 2 cells stand" in line and "1 of 2 differences exclude zero" in line


def test_each_cell_is_compared_with_adamw_of_its_own_model_on_the_same_data(recorded, monkeypatch, counts):
    monkeypatch.setattr(table2, "paper_counts", lambda: counts)

    def record(spec, data="data"):
        lead = {"60m": -1, "130m": 1}.get(spec.model, 0) * (spec.variant != "adamw")
        return {"validation_perplexity": {"60m": 100.0, "130m": 50.0}.get(spec.model, 9.0) + lead, "data_sha256": data, "trainable_parameters": 1, "total_parameters": 1, "tokens": 1}

    found = table2.table(recorded(table2.ARTIFACT, record)).set_index(["model", "variant"])
    assert found.measured_difference["60m", "poet-fs-1_2"] == -1 and found.measured_difference["130m", "poet-fs-1_2"] == 1
    assert (found.direction["60m", "poet-fs-1_2"], found.direction["130m", "poet-fs-1_2"]) == ("as published", "opposite")
    with pytest.raises(RunError, match="different data, such as mini/1.3b/.* and mini/130m/.* and mini/350m/.* and mini/60m/.*: remove those"):
        table2.table(recorded(table2.ARTIFACT, lambda spec: record(spec, spec.model)))


def test_the_summary_names_the_rows_whose_rates_were_not_tuned_on_their_model():
    cells = {"scale": "mini", "direction": "", "difference_low": math.nan, "difference_high": math.nan, "trainable_agrees": "yes"}
    places = {"model": ["60m", "130m", "130m", "130m", "130m"], "method": ["A", "A", "B", "C", "D"]}
    sources = ["t.csv (60m)", "t.csv (130m)", "t.csv (60m)", "t.csv (60m)", "the method's defaults"]
    lines = summary(pd.DataFrame({**places, "learning_rates_from": sources, **cells}), {})
    assert lines[1:3] == [
        "130m: with learning rates from t.csv (60m), not tuned on this model: B, C.",
        "130m: with learning rates from the method's defaults, not tuned on this model: D.",
    ]


@pytest.mark.parametrize("seeds", [1, 3])
def test_cells_of_several_seeds_have_error_bars_and_printed_ones_none(seeds):
    """Drawn from the recorded table, whose standard deviations are all above zero."""
    frame = pd.read_csv(ROOT / "analyses/recorded/mini/table2.csv", keep_default_na=False, na_values=[""])
    frame = frame.assign(std=math.nan) if seeds == 1 else frame
    figure = draw(frame, load_scale({"scale": "mini", "seeds": list(range(seeds))}))
    assert error_bars(figure) == (0 if seeds == 1 else frame["std"].gt(0).sum())
    assert [axes.get_title() for axes in figure.axes][0::4][:1] == ["60m proxy, 32 wide"] and "60m, as printed" in [a.get_title() for a in figure.axes]
    assert not problems(figure)


def test_the_grid_is_every_row_on_every_model():
    scale = load_scale({"scale": "mini", "seeds": [0, 1]})
    specs = grid_runs(scale)
    assert len(specs) == 4 * len(table_rows()) * 2
    assert len({s.name for s in specs}) == len({s.digest for s in specs}) == len(specs)


@pytest.mark.parametrize("name", ["mini", "smoke"])
def test_proxies_keep_the_papers_ratios(name):
    proxy, paper = (load_scale({"scale": s, "seeds": [0]}) for s in (name, "paper"))
    for model in MODELS:
        for row in table_rows():
            a, b = proxy.run(model, row, 0), paper.run(model, row, 0)
            assert a.architecture.hidden_size * 16 == b.architecture.hidden_size
            assert a.architecture.layers * 4 == b.architecture.layers
            # d_ff / 16 is not always whole, and blocks of b=1/8 have to fit: rounded up to a multiple of 8, within 3%
            assert a.architecture.intermediate_size * 16 == pytest.approx(b.architecture.intermediate_size, rel=0.03)
            for key in ("block_size", "rank"):
                if key in a.parameters:
                    assert a.parameters[key] * 16 == b.parameters[key]
            assert a.parameters.get("budget") == b.parameters.get("budget")


def test_paper_scale_has_the_hyperparameters_of_tables_9_and_10():
    scale = load_scale({"scale": "paper", "seeds": [0]})
    run = scale.run("350m", "poet-fs-1_4", 0)
    assert (run.parameters["lr"], run.parameters["poet_lr"], run.parameters["merge_every"]) == (5e-3, 2e-3, 400)
    assert (run.parameters["neumann_terms"], run.parameters["init"]) == (3, "normalized")
    assert (run.steps, run.batch_rows, run.clip_norm, run.weight_decay) == (400_000, 512, 0.1, 0.01)
    assert (run.minimum_lr_ratio, run.warmup_steps, run.precision) == (0.01, 0, "bf16")
    assert scale.run("1.3b", "poet-bs-b64", 0).parameters["poet_lr"] == 4e-3


def test_lora_is_compared_with_the_row_of_poet_that_is_printed_with_about_as_many_parameters():
    for model in MODELS:
        counts = printed(model).set_index("variant").trainable.map(printed_number)
        assert min(POET, key=lambda row: abs(counts[row] - counts[LORA])) == LIKE_LORA
