"""Figures 1, 6, 7 and 17 to 22: which runs, when they are measured, and what is made of it."""

import numpy as np
import pandas as pd
import pytest

from analyses.common.published import read_published
from analyses.figures import figure6, figure7
from analyses.figures.common import spectra
from analyses.figures.common.probed import layer
from poet.training.memory import PROJECTIONS
from poet.training.probes import PROBES
from suite.discovery import find
from suite.scale import load_scale

FIGURES = {n: find(f"figure{n}") for n in (1, 6, 7, *range(17, 23))}
SCALES = ("smoke", "mini", "gpu", "paper")


@pytest.mark.parametrize("scale", SCALES)
def test_three_runs_a_seed_serve_nine_figures(scale):
    scale = load_scale({"scale": scale, "seeds": [0, 1]})
    found = {}
    for figure in FIGURES.values():
        for spec in figure.runs(scale):
            assert found.setdefault(spec.name, spec) == spec
    assert len(found) == 6 and {spec.method for spec in found.values()} == {"adamw", "muon", "poet"}
    assert len({spec.architecture for spec in found.values()}) == 1


@pytest.mark.parametrize("scale", SCALES)
def test_a_merge_has_just_been_done_at_every_measurement(scale):
    scale = load_scale({"scale": scale, "seeds": [0]})
    poet = spectra.run(scale, spectra.POET, 0)
    at, merge_every = poet.probes["spectrum"], poet.parameters["merge_every"]
    assert PROBES["spectrum"].merged and PROBES["energy"].merged
    assert at[0] == 0 and all(step % merge_every == 0 for step in at) and 3 <= len(at) <= 11
    assert poet.steps - merge_every < at[-1] <= poet.steps
    for row in spectra.ROWS:
        assert spectra.run(scale, row, 0).probes == {"energy": at, "spectrum": at}


def test_the_paper_is_measured_every_5000_of_50000_steps():
    scale = load_scale({"scale": "paper", "seeds": [0]})
    spec = spectra.run(scale, spectra.POET, 0)
    assert (spec.model, spec.steps, len(spec.probes["spectrum"])) == ("60m", 50_000, 11)
    assert all(0 <= 5000 * i - step < 400 for i, step in enumerate(spec.probes["spectrum"]))
    assert spec.probes["spectrum"][-1] == 50_000


def test_the_model_has_three_blocks_where_60m_has_fewer():
    found = {scale: spectra.model(load_scale({"scale": scale, "seeds": [0]})) for scale in SCALES}
    assert found == {"smoke": "130m", "mini": "130m", "gpu": "60m", "paper": "60m"}


def test_muon_has_its_own_rates_or_that_of_adamw():
    for name, tuned in (("mini", True), ("paper", False)):
        scale = load_scale({"scale": name, "seeds": [0]})
        adamw, muon = (spectra.run(scale, row, 0).parameters for row in ("adamw", "muon"))
        rates = {rate: muon[rate] for rate in ("lr", "muon_lr")}
        assert rates == (scale.learning_rates("130m", "muon") if tuned else {"lr": adamw["lr"], "muon_lr": 0.02})


def test_blocks_are_split_as_the_paper_splits_eight():
    assert [list(spectra.blocks(8, "adamw", g)) for g in range(3)] == [[0, 1], [2, 3, 4], [5, 6, 7]]
    assert [list(spectra.blocks(8, spectra.POET, g)) for g in range(3)] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    for row in spectra.CUTS:
        for depth in range(3, 40):
            groups = [list(spectra.blocks(depth, row, g)) for g in range(3)]
            assert sum(groups, []) == list(range(depth)) and all(groups)
        assert all(len(spectra.blocks(depth, row, g)) for depth in (1, 2) for g in range(3))


def spectrum_of(spec, steps, factor=1.0):
    """(s, 3): 4, 2, 1 at the start; the largest grows by 1 a measurement."""
    values = np.tile([4.0, 2.0, 1.0], (len(steps), 1))
    values[:, 0] += factor * np.arange(len(steps))
    return values


def measure(spec, probe, steps):
    blocks = range(spec.architecture.layers)
    if probe == "energy":
        return {layer(b, p): (1.0 + b) * np.ones(len(steps)) * (1 + steps / spec.steps) for b in blocks for p in PROJECTIONS}
    return {layer(b, p): spectrum_of(spec, steps, 1.0 if spec.method == "adamw" else 0.0) for b in blocks for p in PROJECTIONS}


def test_a_spectrum_is_summed_up_by_layer_and_step(probed):
    context = probed(FIGURES[1], measure, seeds=(0, 3))
    frame = spectra.table(context, "adamw", [(2, "k_proj")], {("adamw", "largest", "end"): 11.0})
    assert set(frame.n) == {2} and set(frame["std"]) == {0.0}
    steps = spectra.run(context.scale, "adamw", 0).probes["spectrum"]
    assert set(frame.block) == {2} and set(frame.matrix) == {"k"}
    by_quantity = {q: part for q, part in frame.groupby("quantity")}
    assert by_quantity["largest"].step.tolist() == list(steps)
    assert by_quantity["largest"].measured.tolist() == [4.0 + i for i in range(11)]
    assert set(by_quantity["median"].measured) == {2.0} and set(by_quantity["smallest"].measured) == {1.0}
    assert by_quantity["largest relative change"].measured.item() == pytest.approx(10 / 4)
    assert by_quantity["largest"].published.dropna().to_dict() == {by_quantity["largest"].index[-1]: 11.0}


def test_the_largest_change_is_of_any_value_at_any_time():
    spectra_of_a_run = np.array([[4.0, 2.0, 1.0], [4.0, 2.0, 0.5], [4.4, 2.0, 1.0]])
    assert spectra.largest_change(spectra_of_a_run) == pytest.approx(0.5)


def test_a_diverged_run_is_shown_as_diverged(probed):
    def cut(spec, probe, steps):
        return {name: values[:4] for name, values in measure(spec, probe, steps).items()} if spec.method == "adamw" else measure(spec, probe, steps)

    context = probed(FIGURES[17], cut)
    frame = spectra.table(context, "adamw", [(0, "q_proj")])
    largest = frame[frame.quantity == "largest"]
    assert largest.measured.notna().tolist() == [True] * 4 + [False] * 7
    assert largest.diverged.tolist() == [0] * 4 + [1] * 7
    assert frame[frame.quantity == "largest relative change"].diverged.item() == 1
    FIGURES[17].build(context)


def test_figures_are_written_with_what_they_say(probed):
    context = probed(FIGURES[1], measure)
    FIGURES[1].build(context)
    assert all((context.results / output).stat().st_size for output in FIGURES[1].outputs)
    frame = pd.read_csv(context.results / "figure1.csv")
    assert set(frame.matrix) == {"up"} and set(frame.block) == {1} and set(frame.method) == {"AdamW", "POET FS b=1/2"}
    starts = frame[(frame.step == 0) & (frame.quantity == "largest")].set_index("method").published
    assert starts.to_dict() == {"AdamW": 1.19, "POET FS b=1/2": 2.6}


def test_a_grid_has_its_own_blocks_and_all_seven_matrices(probed):
    context = probed(FIGURES[21], measure)
    FIGURES[21].build(context)
    frame = pd.read_csv(context.results / "figure21.csv")
    assert set(frame.block) == {1} and set(frame.matrix) == {p.removesuffix("_proj") for p in PROJECTIONS}


def test_entropy_is_averaged_over_blocks_and_its_published_values_find_their_step(probed):
    def flat_in_block_0(spec, probe, steps):
        found = measure(spec, probe, steps)
        if probe == "spectrum":
            found |= {layer(0, p): np.ones((len(steps), 3)) for p in PROJECTIONS}
        return found

    context = probed(FIGURES[6], flat_in_block_0)
    frame = figure6.table(context)
    share = np.array([16, 4, 1]) / 21
    other = -(share * np.log(share)).sum() / np.log(3)
    start = frame[frame.step == 0]
    assert np.allclose(start.measured, (1 + 2 * other) / 3)
    adamw_k = frame[(frame.method == "AdamW") & (frame.matrix == "k")].reset_index()
    assert adamw_k.published.dropna().to_dict() == {0: 0.920, 1: 0.848, 10: 0.861}


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_entropies_share_one_scale_with_what_was_read_off(probed, drawn, seeds):
    context = probed(FIGURES[6], measure, seeds=seeds)
    FIGURES[6].build(context)
    panels = [axis for axis in drawn[0].axes if axis.get_title()]
    assert len(panels) == 7 and len({axis.get_ylim() for axis in panels}) == 1
    printed = {(p.matrix, float(p.value)) for p in read_published("figure6").itertuples()}
    hollow = [(axis.get_title(), y) for axis in panels for line in axis.lines if line.get_fillstyle() == "none" for y in line.get_ydata() if y == y]
    assert set(hollow) == printed
    low, high = panels[0].get_ylim()
    assert all(low <= value <= high for _, value in printed)
    assert ("n = 1: no error bars." in (context.results / "figures/figure6.txt").read_text()) == (len(seeds) == 1)


def test_energy_is_summed_over_matrices_and_compared_with_its_own_start(probed):
    context = probed(FIGURES[7], measure)
    frame = figure7.table(context)
    part = frame[(frame.method == "Muon") & (frame.quantity == "sum over matrices")]
    assert part.measured.iloc[0] == 7 * (1 + 2 + 3) and part.measured.iloc[-1] == 2 * 7 * (1 + 2 + 3)
    changes = frame[frame.quantity == "change from the start"].groupby("method").measured
    assert (changes.first() == 0).all() and (changes.last() == 1).all()
