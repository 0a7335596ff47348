"""Tables 3, 5, 6 and 7: which runs stand for which printed line, and how what they measured is shown."""

import math

import pandas as pd
import pytest

from analyses.common.ablation import collapsed, orderings
from analyses.common.evidence import rank_correlation, with_p
from analyses.common.grid import grid_runs
from analyses.tables import table3, table5, table6, table7
from suite.scale import load_scale
from suite.statistics import permuted_kendall

NAN = math.nan


def scale(name):
    return load_scale({"scale": name, "seeds": [0, 1]})


def test_settings_are_the_papers_at_paper_scale():
    inits = {label: specs[0].parameters["init"] for label, specs in table5.specs(scale("paper")).items()}
    assert inits == {
        "Standard": "standard",
        "Xavier": "xavier",
        "Uni. spectrum": "uniform_spectrum",
        "Normalized": "normalized",
    }
    periods = {label: specs[0].parameters["merge_every"] for label, specs in table6.specs(scale("paper")).items()}
    assert periods == {"5": 5, "25": 25, "50": 50, "200": 200, "400": 400, "1600": 1600}
    terms = {label: specs[0].parameters["neumann_terms"] for label, specs in table7.specs(scale("paper")).items()}
    assert terms == {"k=0": 0, "k=1": 1, "k=2": 2, "k=3": 3, "k=4": 4}
    for module, model in ((table5, "60m"), (table6, "60m"), (table7, "130m")):
        for specs in module.specs(scale("paper")).values():
            assert [spec.seed for spec in specs] == [0, 1]
            assert {(spec.model, spec.parameters["budget"], spec.parameters["variant"]) for spec in specs} == {
                (model, 0.5, "fs")
            }


@pytest.mark.parametrize("name", ["smoke", "mini", "gpu", "paper"])
def test_runs_of_table_2_are_not_trained_again(name):
    known = {spec.name: spec for spec in grid_runs(scale(name))}
    for module in (table5, table7):
        shared = [spec for spec in module.ARTIFACT.runs(scale(name)) if spec.name in known]
        assert len(shared) == 2 and all(known[spec.name] == spec for spec in shared)


def test_shorter_training_keeps_the_ratios_between_merge_periods():
    assert list(table6.periods(400).values()) == [5, 25, 50, 200, 400, 1600]
    assert list(table6.periods(76).values()) == [1, 5, 10, 38, 76, 304]
    assert list(table6.periods(40).values()) == [1, 2, 5, 20, 40, 160]
    for own in (39, 5):
        assert list(table6.periods(own).values()) == [1, 5, 10, 40, 80, 320]


def test_table_6_says_what_was_used_and_how_often_it_merged(recorded):
    context = recorded(table6.ARTIFACT, lambda spec: {"validation_perplexity": float(spec.parameters["merge_every"])})
    frame = table6.table(context)
    assert frame.merge_every_used.tolist() == frame.measured.tolist() == [1, 5, 10, 40, 80, 320]
    assert frame.merges.tolist() == [480, 96, 48, 12, 6, 1]
    assert frame.published.tolist() == [30.29, 27.27, 25.99, 25.37, 25.31, 25.58]


def test_table_7_shows_divergence_collapse_and_words(recorded):
    by_terms = {0: (NAN, 60.0), 1: (1024.0, 1024.0), 2: (80.0, 82.0), 3: (70.0, 70.0), 4: (71.0, 71.0)}
    context = recorded(
        table7.ARTIFACT,
        lambda spec: {"validation_perplexity": by_terms[spec.parameters["neumann_terms"]][spec.seed]},
        seeds=(0, 1),
    )
    table7.ARTIFACT.build(context)
    frame = pd.read_csv(context.results / "table7.csv").set_index("scheme")
    assert math.isnan(frame.published["k=0"]) and frame.note["k=0"] == "printed: Not converged"
    assert math.isnan(frame.measured["k=0"]) and (frame.n["k=0"], frame.diverged["k=0"]) == (1, 1)
    assert frame.collapsed.tolist() == [0, 2, 0, 0, 0]
    assert frame.measured["k=2"] == 81.0 and frame["std"]["k=2"] == pytest.approx(math.sqrt(2))
    text = (context.results / "table7.md").read_text()
    assert "| k=0 | Not converged | diverged (1 of 2) |" in text
    assert "| k=1 | 22.56 | **1024.00** ± 0.00 (collapsed: 2 of 2) |" in text
    assert "| k=2 | 21.54 | **81.00** ± 1.41 |" in text
    assert "Order printed, best first: k=4, k=3, k=2, k=1, k=0." in text
    assert "Order measured, best first: k=3, k=4, k=2, k=1, k=0." in text
    claim = next(claim for claim in table7.ARTIFACT.claims if claim.kind == "rank agreement")
    assert f"Kendall's tau: {with_p(claim.measure(context))};" in text and "2 seeds" in text


def test_table_3_compares_on_3b_at_borrowed_rates(recorded):
    context = recorded(
        table3.ARTIFACT, lambda spec: {"validation_perplexity": 40.0 if spec.method == "adamw" else 30.0}
    )
    frame = table3.table(context)
    assert frame[["method", "model", "published", "measured"]].values.tolist() == [
        ["AdamW", "3b", 19.61, 40.0],
        ["POET FS b=1/2", "3b", 16.9, 30.0],
    ]
    for line, row in zip(frame.itertuples(), ("adamw", "poet-fs-1_2"), strict=True):
        rates = context.scale.learning_rates("1.3b", row)
        assert (
            line.learning_rates == " ".join(f"{name}={value:g}" for name, value in rates.items())
            and "(1.3b)" in line.learning_rates_from
        )
    table3.ARTIFACT.build(context)
    text = (context.results / "table3.md").read_text()
    assert "POET's perplexity over AdamW's: printed 0.862, measured 0.750." in text
    assert "Order measured, best first: POET FS b=1/2, AdamW." in text and "Kendall" not in text  # of two rows p can only be 1


def test_a_rule_says_where_no_order_of_its_rows_can_decide():
    assert permuted_kendall([([1, 2, 3, 4], [[1.0], [2.0], [3.0], [4.0]])])[1] == pytest.approx(0.083, abs=5e-4)
    said = {claim.key for table in (table5, table6, table7) for claim in table.ARTIFACT.claims if "least two-sided p-value is 0.083" in claim.rule}
    assert said == {"table5-rank-agreement", "table7-more-terms-better"}


def test_a_perplexity_near_the_vocabulary_has_collapsed():
    assert collapsed([972.0, 973.0, 1024.0, 3000.0, NAN], 1024) == 3


def test_orders_put_what_did_not_converge_last():
    found = rank_correlation([([NAN, 2.0, 1.0], [[5.0], [NAN], [4.0]])])
    printed, measured, agreement = orderings(["a", "b", "c"], [NAN, 2.0, 1.0], [5.0, NAN, 4.0], found)
    assert printed == "Order printed, best first: c, b, a." and measured == "Order measured, best first: c, a, b."
    assert agreement == "Rank agreement of 3 rows, Kendall's tau: 0.33 (permutation p = 1, 1 seed); the best is the same: yes."
