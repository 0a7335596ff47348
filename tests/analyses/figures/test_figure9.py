"""Figure 9: longer AdamW runs, and where POET's curve meets their last values."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from analyses.common.grid import longer_runs
from analyses.figures import figure9
from analyses.figures.figure9 import crossing
from analyses.ladder.rungs import rung
from suite.rates import RateTable, Trial
from suite.scale import load_scale
from suite.tuning.cells import Cell


def history(perplexities):
    return pd.DataFrame(
        {"tokens": [100.0 * (i + 1) for i in range(len(perplexities))], "validation_perplexity": perplexities}
    )


def test_a_curve_crosses_where_its_logarithm_does():
    found = history([400.0, math.nan, 100.0, 50.0])
    assert crossing(found, 200.0) == pytest.approx(200.0)  # halfway in the logarithm between tokens 100 and 300
    assert crossing(found, 50.0) == 400.0 and crossing(found, 500.0) == 100.0
    assert math.isnan(crossing(found, 49.0)) and math.isnan(crossing(found, math.nan))


def test_a_longer_adamw_has_the_rates_that_the_ladder_tuned_for_its_length():
    scale = load_scale({"scale": "night", "seeds": [0]})
    scale = replace(scale, rate_table=RateTable((Trial("60m", "adamw", 58110, {"lr": 0.004}, True, ()), Trial("60m", "adamw", 174330, {"lr": 0.002}, True, ()))))
    runs = longer_runs(scale, "60m")
    assert {factor: specs[0].parameters["lr"] for factor, specs in runs.items()} == {1: 0.004, 2: 0.004, 3: 0.002}
    assert runs[3] == rung(scale, Cell("60m", "adamw", Fraction(3))).specs


def test_the_first_crossing_counts():
    assert crossing(history([400.0, 100.0, 300.0, 50.0]), 200.0) == pytest.approx(150.0)


def test_longer_runs_change_their_length_alone():
    found = longer_runs(load_scale({"scale": "mini", "seeds": [0]}), "60m")
    (once,), (twice,), (thrice,) = found.values()
    assert [spec.steps for spec in (once, twice, thrice)] == [480, 960, 1440] and once.variant == "adamw"
    assert once.parameters == twice.parameters == thrice.parameters and thrice.tokens == 3 * once.tokens


def curve(spec):
    """AdamW's perplexity halves with each doubling of its own length; POET goes from 200 to 60 in its own."""
    ends = {480: 100.0, 960: 75.0, 1440: 50.0}
    end = 60.0 if spec.method == "poet" else ends[spec.steps]
    rows = [
        {"step": s, "tokens": 512 * s, "validation_perplexity": v}
        for s, v in zip((spec.steps // 2, spec.steps), (200.0, end), strict=True)
    ]
    return {"history": rows, "validation_perplexity": end + 7}  # of more rows than the curves


def test_crossings_are_those_of_the_curves(recorded):
    context = recorded(figure9.ARTIFACT, curve, seeds=(0, 1))
    figure9.build(context)
    frame = pd.read_csv(context.results / "figure9.csv")
    shares = frame[(frame.quantity == figure9.SHARE) & frame.published.isna()].set_index("against")
    for label, level in (("AdamW, 1x tokens", 100.0), ("AdamW, 2x tokens", 75.0)):
        assert shares.measured[label] == pytest.approx(0.5 + 0.5 * np.log(200 / level) / np.log(200 / 60))
    never = shares.loc["AdamW, 3x tokens"]
    assert math.isnan(never.measured) and (never.n, never.diverged, never.note) == (0, 0, "not reached by 2 of 2 seeds")
    tokens = frame[(frame.quantity == figure9.CROSSING)].set_index("against").measured
    assert tokens["AdamW, 1x tokens"] == pytest.approx(shares.measured["AdamW, 1x tokens"] * 480 * 512)
    assert frame[(frame.quantity == figure9.SHARE)].published.dropna().tolist() == [pytest.approx(250 / 300)]
    assert all((context.results / output).stat().st_size > 100 for output in figure9.ARTIFACT.outputs)
    caption, findings = (context.results / "figures/figure9.txt").read_text().split("\n\n")
    finals = frame[frame.quantity == "final perplexity"].set_index("series")
    assert finals.measured.to_dict() == {"AdamW, 1x tokens": 107.0, "AdamW, 2x tokens": 82.0, "AdamW, 3x tokens": 57.0, "POET FS b=1/2": 67.0}
    assert finals.published.dropna().to_dict() == {"AdamW, 1x tokens": 26.68, "POET FS b=1/2": 25.37}
    assert "Curves: 128 validation rows; final perplexities: 1024." in caption and "n = 2 seeds" in caption and "not fit to judge orders" in caption
    assert findings.startswith("POET reaches the last value of AdamW, 1x tokens, after ")


def test_a_diverged_run_is_counted_and_not_called_never(recorded):
    def record(spec):
        values = curve(spec)
        if spec.method == "adamw" and spec.seed == 1:
            values["history"][-1]["validation_perplexity"] = math.nan
        return values

    context = recorded(figure9.ARTIFACT, record, seeds=(0, 1))
    frame = figure9.table(context)
    once = frame[(frame.quantity == figure9.SHARE) & (frame.against == "AdamW, 1x tokens")].iloc[0]
    assert (once.n, once.diverged, once.note) == (1, 1, "") and math.isnan(once.measured)
    assert "AdamW, 1x tokens, not known: a run diverged;" in figure9.crossing_sentences(frame)
    last = frame[(frame.quantity == figure9.PERPLEXITY) & (frame.series == "AdamW, 1x tokens")].iloc[-1]
    assert math.isnan(last.measured) and last.diverged == 1
