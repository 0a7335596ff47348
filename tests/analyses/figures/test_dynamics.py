"""Figures 8 and 26: Table 2's own runs, where curves cross, and what is said of those that do not."""

import math

import numpy as np
import pandas as pd
import pytest

from analyses.common.grid import grid_runs
from analyses.common.paper_scale import model_label
from analyses.figures import figure8, figure26
from analyses.figures.common import dynamics
from analyses.figures.common.dynamics import CROSSING, FINAL, overtakes_for_good
from suite.scale import load_scale
from tests.analyses.conftest import evaluated


def series(*values, every=10):
    return pd.Series(values, index=[every * (i + 1) for i in range(len(values))])


def test_a_crossing_is_for_good():
    adamw = series(10.0, 8.0, 7.0, 6.0)
    assert overtakes_for_good(series(11.0, 7.9, 7.1, 5.9), adamw, 40) == 1.0  # the first time did not last
    assert overtakes_for_good(series(11.0, 8.1, 6.9, 5.9), adamw, 40) == 0.75
    assert overtakes_for_good(series(9.0, 7.0, 6.0, 5.0), adamw, 40) == 0
    assert math.isnan(overtakes_for_good(series(9.0, 7.0, 6.0, 6.0), adamw, 40))


def test_who_diverged_crosses_nothing_and_cannot_be_crossed():
    adamw = series(10.0, 8.0, 7.0, 6.0)
    assert math.isnan(overtakes_for_good(series(9.0, 7.0), adamw, 40))
    assert math.isnan(overtakes_for_good(series(9.0, 7.0, np.nan, np.nan), adamw, 40))
    assert math.isnan(overtakes_for_good(adamw, series(11.0, 9.0), 40))


def test_the_runs_are_those_of_table_2():
    scale = load_scale({"scale": "mini", "seeds": [0, 1]})
    assert figure26.ARTIFACT.runs(scale) == grid_runs(scale)
    of_table = {spec.name: spec for spec in grid_runs(scale)}
    runs = figure8.ARTIFACT.runs(scale)
    assert all(of_table[spec.name] == spec for spec in runs)
    assert {spec.model for spec in runs} == {"350m", "1.3b"} and len({spec.variant for spec in runs}) == 7


def test_scales_without_large_models_leave_figure_8_out():
    gpu = load_scale({"scale": "gpu", "seeds": [0]})
    assert any(model not in gpu.models for model in figure8.ARTIFACT.models) and not figure26.ARTIFACT.models
    assert {spec.model for spec in figure26.ARTIFACT.runs(gpu)} == {"60m", "130m"}


def curves(level):
    """Histories: AdamW falls from 100 to 50; others by what is ahead of it from the third quarter on."""
    return lambda spec: evaluated(spec, lambda share: 100 - 50 * share + spec.seed + level(spec, share))


def level(spec, share):
    if spec.variant == "poet-fs-1_2":
        return 2 if share < 0.75 else -2
    if spec.variant == "lora-r64":
        return math.nan if share > 0.5 else 1
    if spec.variant == "galore":
        return 2000
    return {"adamw": 0, "poet-bs-b256": -1}.get(spec.variant, 3)


def test_the_table_says_who_ends_where(recorded):
    context = recorded(figure26.ARTIFACT, curves(level), seeds=(0, 2))
    figure26.ARTIFACT.build(context)
    frame = pd.read_csv(context.results / "figure26.csv", keep_default_na=True).set_index(["model", "variant", "quantity"])
    final, crossed = frame.xs(FINAL, level="quantity"), frame.xs(CROSSING, level="quantity")
    assert final.measured["350m", "adamw"] == 51 and final["std"]["350m", "adamw"] == pytest.approx(2**0.5)
    assert final.published["350m", "adamw"] == 16.78
    assert crossed.measured["350m", "poet-fs-1_2"] == 0.75 and crossed.crossed["350m", "poet-fs-1_2"] == "yes"
    assert (crossed.published_low["350m", "poet-fs-1_2"], crossed.published_high["350m", "poet-fs-1_2"]) == (0.75, 0.95)
    assert crossed.crossed["60m", "poet-bs-b256"] == "below throughout"
    assert crossed.crossed["60m", "poet-bs-b64"] == "no" and np.isnan(crossed.published["60m", "poet-bs-b64"])
    assert crossed.crossed["60m", "lora-r64"] == "no" and crossed.diverged["60m", "lora-r64"] == 2
    assert np.isnan(final.measured["60m", "lora-r64"]) and final.diverged["60m", "lora-r64"] == 2
    assert final.collapsed["60m", "galore"] == 2 and final.collapsed["60m", "adamw"] == 0
    assert all((context.results / output).stat().st_size for output in figure26.ARTIFACT.outputs)


@pytest.mark.parametrize(("artifact", "seeds", "said"), [(figure8.ARTIFACT, (0,), "n = 1: no error bars."), (figure26.ARTIFACT, (0, 2), "n = 2 seeds.")])
def test_curves_are_drawn_from_their_first_point(recorded, drawn, artifact, seeds, said):
    def early(spec, share):
        return 900 if share < 0.2 else level(spec, share)  # the first points lie far above the last

    context = recorded(artifact, curves(early), seeds=seeds)
    artifact.build(context)
    models = list(dict.fromkeys(spec.model for spec in artifact.runs(context.scale)))
    for axis, model in zip(drawn[0].axes, models, strict=False):
        spec = context.scale.run(model, "adamw", 0)
        assert axis.get_title() == model_label(context.scale, model)
        assert axis.get_xlim() == (spec.evaluate_every, spec.steps)
        low, high = axis.get_ylim()
        assert all(low <= y <= high for line in axis.lines for y in line.get_ydata() if y == y)
        assert len(axis.collections) == (0 if len(seeds) == 1 else len(axis.lines) - len([line for line in axis.lines if line.get_marker() == "x"]))
    caption = (context.results / artifact.outputs[-1]).read_text()
    assert said in caption and "mini scale is not fit to judge orders (control " in caption


def test_the_caption_counts_what_the_table_has(recorded):
    context = recorded(figure8.ARTIFACT, curves(level))
    cells = dynamics.cells(context.scale, figure8.MODELS, ("adamw", "poet"))
    said = dynamics.sentence(dynamics.table(context, cells, dynamics.curves(context, cells), (0.75, 0.95)))
    # Printed below AdamW: FS 1/2 and BS 256 on each model; FS 1/2 crosses, BS 256 is below throughout.
    assert "of 4 that the paper prints below it, 2 cross it (75% to 80% of training) and 2 are below it throughout" in said
    assert "of 8 that the paper prints above it, 0 cross it and 0 are" in said
