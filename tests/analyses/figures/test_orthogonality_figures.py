"""Figures 10 and 23 to 25: six runs, measured where the error peaks, and what is read off their curves."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from analyses.figures.common import orthogonality
from analyses.figures.common.orthogonality import LAST_END, MEDIAN, PEAK
from analyses.figures.common.probed import layer
from poet.orthogonal import cayley_neumann, skew_unpack
from poet.training.memory import PROJECTIONS
from poet.training.probes import PROBES
from suite.discovery import find
from suite.scale import load_scale

FIGURES = {n: find(f"figure{n}") for n in (10, 23, 24, 25)}
SCALES = ("smoke", "mini", "gpu", "paper")


@pytest.mark.parametrize("scale", SCALES)
def test_four_figures_read_the_same_six_runs(scale):
    scale = load_scale({"scale": scale, "seeds": [0]})
    grids = [figure.runs(scale) for figure in FIGURES.values()]
    assert all(runs == grids[0] for runs in grids)
    assert [spec.parameters["neumann_terms"] for spec in grids[0]] == list(range(6))
    same = {dataclasses.replace(spec, variant="", parameters={**spec.parameters, "neumann_terms": 0}).digest for spec in grids[0]}
    assert len(same) == 1 and len({spec.name for spec in grids[0]}) == 6


@pytest.mark.parametrize("scale", SCALES)
def test_the_error_is_measured_before_the_merges(scale):
    spec = orthogonality.run(load_scale({"scale": scale, "seeds": [0]}), 3, 0)
    at, period, tenth = spec.probes["orthogonality"], spec.parameters["merge_every"], orthogonality.first_tenth(spec.steps)
    assert not PROBES["orthogonality"].merged
    assert set(range(tenth + 1)) <= set(at) and at[-1] <= spec.steps
    assert set(range(period, spec.steps + 1, period)) <= set(at)  # the peaks, to the end of the run
    later = [step for step in at if step > tenth]
    assert len(later) <= 150 and (period < 3 or sum(step % period == 1 for step in later) > 30)


def test_the_paper_merges_every_200_of_10000_steps():
    spec = orthogonality.run(load_scale({"scale": "paper", "seeds": [0]}), 1, 0)
    assert (spec.model, spec.steps, spec.parameters["merge_every"]) == ("130m", 10_000, 200)
    assert len(spec.probes["orthogonality"]) == 1001 + 135


def sawtooth(spec, steps):
    """The error grows from one merge to the next: by 1 a step in the first period, 0.99 in the second, and so on."""
    period = spec.parameters["merge_every"]
    index = np.maximum(steps - 1, 0) // period
    return np.where(steps == 0, 0, (steps - index * period) * (1 - 0.01 * index)) * 1e-3


def measure(spec, probe, steps):
    blocks = range(spec.architecture.layers)
    scale = {"R": 1.0, "P": 2.0}
    return {f"{layer(b, p)}.{s}": scale[s] * sawtooth(spec, steps) * (1 + b) for b in blocks for p in PROJECTIONS for s in "RP"}


def test_a_curve_is_read_at_its_peaks():
    spec = orthogonality.run(load_scale({"scale": "mini", "seeds": [0]}), 3, 0)
    period = spec.parameters["merge_every"]
    found = orthogonality.summaries(spec, sawtooth(spec, np.array(spec.probes["orthogonality"])) * 1e3 / period)
    assert found[PEAK] == pytest.approx(1)
    assert found[LAST_END] == pytest.approx(0.96)  # 64 of 640 steps, a merge every 12: the fifth period is the last
    assert found[MEDIAN.format("first")] == pytest.approx(0.98)
    assert found[MEDIAN.format("middle")] == pytest.approx(0.74, abs=0.02)
    assert found[MEDIAN.format("last")] == pytest.approx(0.50, abs=0.02)


def test_a_run_that_ends_early_has_no_later_numbers():
    spec = orthogonality.run(load_scale({"scale": "mini", "seeds": [0]}), 0, 0)
    values = sawtooth(spec, np.array(spec.probes["orthogonality"]))
    values[150:] = np.nan
    found = orthogonality.summaries(spec, values)
    assert np.isfinite([found[PEAK], found[LAST_END]]).all() and np.isnan(found[MEDIAN.format("last")])


@pytest.mark.parametrize("scale", ("smoke", "gpu"))
def test_every_scale_has_every_number(scale):
    spec = orthogonality.run(load_scale({"scale": scale, "seeds": [0]}), 3, 0)
    found = orthogonality.summaries(spec, sawtooth(spec, np.array(spec.probes["orthogonality"])))
    assert np.isfinite(list(found.values())).all()


def test_figure_10_shows_r_and_p_of_one_matrix_with_what_was_read_off(probed):
    context = probed(FIGURES[10], measure)
    FIGURES[10].build(context)
    assert all((context.results / output).stat().st_size for output in FIGURES[10].outputs)
    frame = pd.read_csv(context.results / "figure10.csv")
    assert set(frame.matrix) == {"up"} and set(frame.block) == {1} and set(frame.terms) == set(range(6))
    peaks = frame[(frame.quantity == PEAK) & (frame.terms == 1)].set_index("side")
    assert peaks.measured["P"] == pytest.approx(2 * peaks.measured["R"])
    assert peaks.published_low["R"] == 0.2 and peaks.published_high["R"] == 0.3
    later = frame[(frame.quantity == LAST_END) & (frame.side == "R")].set_index("terms")
    assert later.published_low[3] == 3e-3 and np.isnan(later.published_low[0])


def test_figure_10_has_a_panel_for_each_k_and_the_others_behind(probed, drawn):
    context = probed(FIGURES[10], measure)
    FIGURES[10].build(context)
    axes = drawn[0].axes
    assert len(axes) == 2 * 6 and [axis.get_title() for axis in axes[:6]] == [f"k = {k}" for k in range(6)]
    for axis, k in zip(axes, 2 * list(range(6)), strict=True):
        (front,) = [line for line in axis.lines if line.get_zorder() == max(other.get_zorder() for other in axis.lines)]
        assert len(axis.lines) == 6 and front.get_color() == f"C{k}" and all(line.get_color() == "0.8" for line in axis.lines if line is not front)
    caption = (context.results / "figures/figure10.txt").read_text()
    assert "Model: 130m proxy, 48 wide, 640 steps, a merge every 12." in caption and "perplexity" not in caption  # figure10.csv has none


def test_a_diverged_run_is_marked_where_it_ends(probed):
    def cut(spec, probe, steps):
        found = measure(spec, probe, steps)
        return {name: v[:40] for name, v in found.items()} if spec.parameters["neumann_terms"] == 0 else found

    def record(spec):
        return {"status": "diverged", "steps": 39, "validation_perplexity": np.nan} if spec.parameters["neumann_terms"] == 0 else {}

    context = probed(FIGURES[23], cut, record)
    figure, axis = plt.subplots()
    orthogonality.draw(axis, context, orthogonality.errors(context), f"{layer(0, 'q_proj')}.R", until=64)
    crosses = [line for line in axis.lines if line.get_marker() == "x"]
    plt.close(figure)
    assert len(crosses) == 1 and crosses[0].get_xdata() == [39]
    frame = orthogonality.table(context, orthogonality.errors(context), [(0, "q_proj", "R")])
    assert "Crosses: diverged (k = 0)." in orthogonality.note(context, "")
    gone = frame[(frame.terms == 0) & (frame.quantity == MEDIAN.format("last"))]
    assert gone.diverged.item() == 1 and np.isnan(gone.measured.item())


def test_every_merge_stretches_but_with_three_terms():
    """R R' is at least I for k = 0, 1, 2, 4, 5, and at most I for k = 3, as the module says."""
    q = skew_unpack(torch.randn(120, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    q = 0.9 * q / torch.linalg.matrix_norm(q, 2)
    for terms in orthogonality.TERMS:
        values = torch.linalg.svdvals(cayley_neumann(q, terms))
        assert (values < 1 - 1e-9).any() == (terms == 3) and (values > 1 + 1e-9).any() == (terms != 3)
