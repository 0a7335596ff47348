"""Figures 2 and 11 to 14: the unmerged run, the rule for the phases, and the theory of v'Rv."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from analyses.figures.common import probing
from analyses.figures.common.probed import layer
from analyses.figures.figure2 import figure2
from analyses.phases import drift, find_phases, length_of_second
from poet.orthogonal import cayley, cayley_neumann, orthogonality_error
from poet.training.llama import build_llama
from poet.training.memory import PROJECTIONS
from poet.training.probes import matrices
from suite.discovery import find
from suite.scale import load_scale
from tests.analyses.conftest import evaluated

FIGURES = {n: find(f"figure{n}") for n in (2, 11, 12, 13, 14)}
SCALES = ("smoke", "mini", "gpu", "paper")


@pytest.mark.parametrize("scale", SCALES)
def test_five_figures_read_one_run_and_figure_2_its_control(scale):
    scale = load_scale({"scale": scale, "seeds": [0, 1]})
    grids = [FIGURES[n].runs(scale) for n in (11, 12, 13, 14)]
    assert all(runs == grids[0] for runs in grids) and len(grids[0]) == 2
    both = FIGURES[2].runs(scale)
    assert both[:2] == grids[0] and [spec.parameters["neumann_terms"] for spec in both] == [3, 3, None, None]


@pytest.mark.parametrize("scale", SCALES)
def test_the_run_is_whole_unmerged_and_at_half_the_rate(scale):
    scale = load_scale({"scale": scale, "seeds": [0]})
    spec, usual = probing.run(scale, 0), scale.run("60m", "poet-fs-1_2", 0)
    assert spec.parameters["budget"] == 1 and spec.parameters["merge_every"] > spec.steps == usual.steps
    assert spec.parameters["poet_lr"] == usual.parameters["poet_lr"] / 2
    at = np.array(spec.probes["rotations"])
    assert spec.probes["orthogonality"] == spec.probes["rotations"] and at[0] == 0 and at[-1] == spec.steps
    assert len(at) == min(61, spec.steps + 1) or spec.steps < 1000
    gaps = np.diff(at)
    assert spec.steps < 60 or gaps[:10].mean() < gaps[-10:].mean() / 2


def curve(steps, falls_until, final=0.62, matrices=200, seed=0):
    """Cosines that fall linearly to their end, and then wander in proportion to a cosine schedule."""
    generator = np.random.default_rng(seed)
    share = steps / steps[-1]
    fall = 1 - (1 - final) * np.clip(share / falls_until, 0, 1)
    rate = 0.5 * (1 + np.cos(np.pi * (share[1:] + share[:-1]) / 2))
    wander = generator.standard_normal((matrices, len(steps) - 1)) * rate * np.diff(share)
    return fall + 0.5 * np.concatenate([np.zeros((matrices, 1)), np.cumsum(wander, 1)], 1)


def test_phases_are_found_where_they_were_put():
    steps = np.linspace(0, 1000, 101)
    found = find_phases(steps, curve(steps, 0.2))
    assert found.first_end == pytest.approx(0.18, abs=0.02)  # 90% of a linear fall
    # Mean |normal| is 0.8, so the wandering moves by 0.4 rate: 0.38 + 0.4 * 0.31 = 0.50 in all, and a quarter of that is
    # 0.4 rate at 62% of the schedule.
    assert found.last_start == pytest.approx(0.62, abs=0.03)
    assert found.second == pytest.approx(found.last_start - found.first_end)
    assert str(found) == "Shaded: the three phases, as the rule in analyses/phases.py finds them."


def test_movement_in_proportion_to_the_learning_rate_slows_where_the_paper_has_it():
    share = np.linspace(0, 1, 101)
    moved = share + np.sin(np.pi * share) / np.pi  # the integral of 1 + cos
    assert find_phases(1000 * share, (1 - 0.4 * moved)[None]).last_start == pytest.approx(0.775, abs=0.01)


@pytest.mark.parametrize("scale", ("mini", "night"))
def test_cosines_that_only_follow_the_schedule_show_no_three_phases(scale):
    spec = probing.run(load_scale({"scale": scale, "seeds": [0]}), 0)
    steps = np.array(spec.probes["rotations"])
    null = drift(steps, spec)
    assert find_phases(steps, null).first_end == pytest.approx(0.6, abs=0.02) and find_phases(steps, null).second > 0
    assert length_of_second(steps, 1 - 0.4 * (1 - null), null) == 0
    sooner = curve(steps, 0.2)
    assert length_of_second(steps, sooner, null) == find_phases(steps, sooner).second > 0
    sooner[:, -1] = np.nan
    assert math.isnan(length_of_second(steps, sooner, null))


def test_the_rule_can_fail():
    steps = np.linspace(0, 1000, 101)
    whole = np.linspace(1, 0.6, 101)[None].repeat(5, 0)
    steady = find_phases(steps, whole)
    assert steady.first_end == pytest.approx(0.9, abs=0.011) and math.isnan(steady.last_start) and math.isnan(steady.second)
    assert "no phase III" in str(steady)
    still = find_phases(steps, np.linspace(1, 0.97, 101)[None])
    assert math.isnan(still.first_end) and "no phases" in str(still)
    late = find_phases(steps, np.where(steps < 900, 1 - 0.001 * steps, 0.1)[None])  # 90% of the change at 81%, still after 90%
    assert late.second == pytest.approx(0.09, abs=0.021)
    jump = np.concatenate([np.linspace(1, 0.75, 10), np.linspace(0.75, 0.7, 91)])  # slow from 9% on, settled later
    missing = find_phases(steps, jump[None])
    assert missing.second == 0 and missing.last_start < missing.first_end and "no phase II" in str(missing)


def test_a_diverged_run_has_no_phases():
    steps = np.linspace(0, 1000, 101)
    cosines = curve(steps, 0.2)
    cosines[:, 50:] = np.nan
    assert math.isnan(find_phases(steps, cosines).first_end)


def _skew(m, size, seed=0):
    """A random Q whose eigenvalues, over i, fill a semicircle of about that radius."""
    gaussian = torch.randn(m, m, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return size * (gaussian - gaussian.T) / math.sqrt(8 * m)


def test_the_deviation_of_a_probe_is_that_of_random_vectors():
    m = 24
    r = cayley(_skew(m, 1.0))
    v = torch.nn.functional.normalize(torch.randn(20000, m, generator=torch.Generator().manual_seed(1), dtype=torch.float64), dim=1)
    found = torch.einsum("ni,ij,nj->n", v, r, v)
    trace, square = (r.trace() / m).item(), ((r + r.T) / 2).square().sum().item() / m
    assert found.mean().item() == pytest.approx(trace, abs=0.01)
    assert probing.predicted_deviation(trace, square, m) == pytest.approx(found.std().item(), rel=0.03)
    assert probing.predicted_deviation(trace, square, m, sign=1) > 2 * found.std().item()
    # The paper's own form, with the sign corrected.
    printed = (m + (r @ r).trace() - 2 * r.trace() ** 2 / m) / (m * (m + 2))
    assert probing.predicted_deviation(trace, square, m) == pytest.approx(printed.sqrt().item())


def test_cayley_neumann_ends_in_the_middle_of_the_papers_cone():
    """Tr(R)/m = 5/8 and e_orth = 0.33 where a semicircle of eigenvalues reaches 1, as the module says."""
    q = _skew(600, 1.0)
    assert torch.linalg.matrix_norm(q, 2).item() == pytest.approx(1, abs=0.03)
    r = cayley_neumann(q, 3)
    assert (r.trace() / 600).item() == pytest.approx(5 / 8, abs=0.005)
    assert orthogonality_error(r).item() == pytest.approx(0.33, abs=0.02)


def test_dimensions_are_those_of_the_matrices():
    spec = probing.run(load_scale({"scale": "mini", "seeds": [0]}), 0)
    layers = matrices(build_llama(spec.architecture, device="meta"))
    blocks = range(spec.architecture.layers)
    inputs = [layers[layer(b, p)].in_features for p in PROJECTIONS for b in blocks]
    outputs = [layers[layer(b, p)].out_features for p in PROJECTIONS for b in blocks]
    assert probing.dimensions(spec.architecture).tolist() == inputs + outputs


def measure(spec, probe, steps):
    """Cosines that fall to 0.6 (R) and 0.7 (P); traces to 0.62, with cosines two corrected deviations off."""
    found = {}
    sizes = iter(probing.dimensions(spec.architecture))
    for side, final in (("R", 0.60), ("P", 0.70)):
        for p in PROJECTIONS:
            for b in range(spec.architecture.layers):
                if probe == "orthogonality":
                    found[f"{layer(b, p)}.{side}"] = np.linspace(0, 0.3, len(steps))
                    continue
                cosine = 1 - (1 - final) * np.clip(5 * steps / spec.steps, 0, 1)
                square = np.full(len(steps), 0.5)
                trace = np.full(len(steps), 0.62)
                if spec.parameters["neumann_terms"] is None:
                    cosine = trace + 2 * np.sqrt(2 * (square - trace**2) / (next(sizes) + 2))
                found[f"{layer(b, p)}.{side}"] = np.stack((cosine, trace, square), -1)
    return found


def history(spec):
    return evaluated(spec, lambda share: 99.0)


def test_the_table_answers_what_the_figure_asks(probed):
    context = probed(FIGURES[2], measure, history)
    frame = figure2.table(context)
    one, control = (frame[frame["map"] == name].set_index(["quantity", "side", "matrix"]) for name in figure2.MAPS.values())
    assert one.measured["final cosine", "R", "gate"] == pytest.approx(0.6)
    assert one.measured["final cosine", "P", "gate"] == pytest.approx(0.7)
    assert one.loc[("final cosine", "R", "gate"), ["published_low", "published_high"]].tolist() == [0.60, 0.66]
    assert one.measured["largest orthogonality error", "both", "all"] == pytest.approx(0.3)
    assert one.measured["lowest trace / dimension", "both", "all"] == pytest.approx(0.62)
    assert one.measured["end of phase I", "both", "all"] == pytest.approx(0.18, abs=0.03)
    assert one.published["length of phase II, text", "both", "all"] == 0.80
    assert control.measured["deviation of v'Rv, corrected formula", "both", "all"] == pytest.approx(2)
    assert control.published.isna().all()
    assert control.measured["deviation of v'Rv, printed formula", "both", "all"] < 1


def test_figures_are_written(probed):
    context = probed(FIGURES[2], measure, history)
    for number in (2, 12, 13):
        FIGURES[number].build(context)
        assert all((context.results / output).stat().st_size for output in FIGURES[number].outputs)
    frame = pd.read_csv(context.results / "figure12.csv")
    assert set(frame.side) == {"R"} and set(frame.block) == {0, 1} and frame.published.notna().sum() == 14
    assert frame[frame.step == frame.step.max()].measured.tolist() == pytest.approx([0.6] * 14)
    assert pd.read_csv(context.results / "figure13.csv").measured.tolist() == pytest.approx([0.62] * len(frame))


def test_a_diverged_run_is_drawn_as_far_as_it_came(probed):
    def cut(spec, probe, steps):
        return {name: values[:20] for name, values in measure(spec, probe, steps).items()}

    diverged = {"status": "diverged", "validation_perplexity": math.nan}
    context = probed(FIGURES[2], cut, lambda spec: {**history(spec), **diverged})
    FIGURES[2].build(context)
    FIGURES[14].build(context)
    frame = pd.read_csv(context.results / "figure2.csv").set_index(["map", "quantity", "side", "matrix"])
    assert frame.diverged["Cayley-Neumann", "final cosine", "R", "q"] == 1


def test_cosines_that_only_follow_the_schedule_are_said_in_the_caption(probed):
    def following(spec, probe, steps):
        cosines = 0.6 + 0.4 * drift(steps, spec)[0]
        return {name: values if probe == "orthogonality" else np.stack((cosines,) * 3, -1) for name, values in measure(spec, probe, steps).items()}

    said = "count no three phases"
    for rotations, follows in ((measure, False), (following, True)):
        context = probed(FIGURES[2], rotations, history)
        FIGURES[2].build(context)
        found = figure2.table(context)
        lengths = found[(found["map"] == "Cayley-Neumann") & (found.quantity == "length of phase II")].measured
        assert (lengths == 0).all() == follows == (said in (context.results / "figures/figure2.txt").read_text())
