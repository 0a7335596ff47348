"""The controls: what they train, what they say of POET's advantage, and AdamW at equal cost."""

import io
import math
import types
from dataclasses import replace

import pandas as pd
import pytest
import torch

from analyses.common.grid import grid_runs, longer_runs
from analyses.common.paper_scale import model_label
from analyses.controls import cells as control_cells
from analyses.controls import controls
from analyses.controls.equal_cost import costs_of, perplexity_at, timed_alike
from poet.launch.operations import operations_per_step
from poet.training.run import Run
from suite.grounds import Grounds
from suite.rates import RateTable, Trial
from suite.scale import ROOT, load_scale
from tests.analyses.legibility import error_bars, problems

MINI = {"scale": "mini", "seeds": [0]}


def test_the_reference_points_are_table_2s_runs():
    scale = load_scale(MINI)
    known = {spec.name: spec for spec in grid_runs(scale)}
    own = {(c.model, c.control): c.specs[0] for c in control_cells.cells(scale) if c.own_rate}
    for model in ("60m", "130m", "350m"):
        for control in (controls.ADAMW, controls.POET_FS, controls.POET_BS):
            assert known[own[model, control].name] == own[model, control]
        adamw, normalized = own[model, controls.ADAMW], own[model, controls.NORMALIZED]
        assert normalized.parameters == {**adamw.parameters, "init": "normalized"}
        poet, frozen = own[model, controls.POET_FS], own[model, controls.FROZEN]
        assert frozen.parameters == {**poet.parameters, "budget_r": 0.0, "budget_p": 0.0}
        rates = own[model, controls.TWO_RATES].parameters
        assert rates == scale.learning_rates(model, "adamw-two-rates") and rates["lr"] > rates["matrix_lr"]


def rates_shown(scale, control):
    return sorted(c.specs[0].parameters["lr"] for c in control_cells.cells(scale) if (c.model, c.control) == ("60m", control))


def tuned(chosen, row="adamw", open_sides=(), **rates):
    """Mini scale whose AdamW was tried at 0.001 to 0.016 on 60m; ``rates`` are those of ``row``."""
    trials = [Trial("60m", "adamw", 480, {"lr": lr}, lr == chosen, open_sides) for lr in (0.004, 0.002, 0.008, 0.001, 0.016)]
    trials += [Trial("60m", row, 480, rates, True, ())] if rates else []
    return replace(load_scale(MINI), rate_table=RateTable(tuple(trials)))


@pytest.mark.parametrize("control", [controls.ADAMW, controls.NORMALIZED])
def test_both_initializations_are_shown_the_same_rates(control):
    """A choice inside what was tried with its neighbours, one at the end of it with all that were tried."""
    assert rates_shown(tuned(0.004), control) == [0.002, 0.004, 0.008]
    assert rates_shown(tuned(0.016, open_sides=("lr",)), control) == [0.001, 0.002, 0.004, 0.008, 0.016]
    scale = load_scale(MINI)
    assert not scale.tuned("60m", "adamw").open_sides and len(rates_shown(scale, control)) == 3
    assert all(c.own_rate for c in control_cells.cells(scale) if c.model != "60m")
    assert all(c.own_rate for c in control_cells.cells(load_scale({"scale": "paper", "seeds": [0]})))


def test_two_rates_that_were_tuned_are_adamw_s_own():
    scale = tuned(0.004, "adamw-two-rates", lr=0.25, matrix_lr=0.125)
    (spec, *_) = control_cells.specs_of(scale, "60m", controls.TWO_RATES)
    assert (spec.parameters["lr"], spec.parameters["matrix_lr"], spec.variant) == (0.25, 0.125, "adamw-two-rates")


def test_poet_without_r_and_p_trains_the_rest_and_resumes(make_spec, data):
    """Merges, cache, optimizer and probes with no factor at all; 12 steps with merges after steps 5 and 10."""
    parameters = {**controls.VARIED[controls.FROZEN][1], "variant": "fs", "merge_every": 5, "lr": 0.03}
    spec = make_spec(
        method="poet", parameters=parameters, probes={"orthogonality": (3,), "rotations": (3,), "spectrum": (0, 12)}
    )
    run = Run(spec, data, "cpu")
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    losses = []
    for step in range(12):
        if step == 6:
            torch.save(run.state(), buffer := io.BytesIO())
        run.window.zero_()
        run.train_step()
        losses.append(run.window.item())
    after = run.model.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in after if "_proj" in name)
    moved = {name for name in after if not torch.equal(after[name], before[name])}
    assert {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"} <= moved
    assert losses[-1] < losses[0] - 0.3 and not any(line["trainable"] for line in run.elements)
    buffer.seek(0)
    resumed = Run(spec, data, "cpu")
    resumed.restore(torch.load(buffer, weights_only=False))
    while resumed.step < 12:
        resumed.train_step()
    assert resumed.weights_digest() == run.weights_digest()


PERPLEXITIES = {
    controls.ADAMW: 100.0,
    controls.TWO_RATES: 97.0,
    controls.NORMALIZED: 90.0,
    controls.FROZEN: 95.0,
    controls.EXACT: 82.0,
    controls.EPS: 84.0,
    controls.POET_FS: 80.0,
    controls.POET_BS: 85.0,
}


def record(spec):
    """POET takes 700 s; AdamW's runs a second a step; another rate of the grid is better with normalized weights."""
    longer = {960: 64.0, 1440: 60.0}
    if spec.steps in longer and spec.model == "60m" and spec.method == "adamw":
        return {"validation_perplexity": longer[spec.steps]}
    if spec.method == "adamw-two-rates":
        return {"validation_perplexity": PERPLEXITIES[controls.TWO_RATES]}
    if spec.method == "adamw":
        value = PERPLEXITIES[controls.NORMALIZED if spec.parameters["init"] == "normalized" else controls.ADAMW]
        return {"validation_perplexity": value - (4.0 if "-lr=0.002" in spec.variant else 0.0)}
    if spec.parameters["budget_r"] == 0.0:
        control = controls.FROZEN
    elif spec.parameters["merge"] == "exact":
        control = controls.EXACT
    elif spec.parameters["adam_eps"] == "uncorrected":
        control = controls.EPS
    else:
        control = controls.POET_BS if spec.parameters["variant"] == "bs" else controls.POET_FS
    return {
        "validation_perplexity": PERPLEXITIES[control],
        "cost": {"train_seconds": 700.0 if control != controls.POET_BS else 100.0},
    }


def test_gains_are_shares_of_poets_advantage(recorded):
    context = recorded(controls.ARTIFACT, record, seeds=(0, 1))
    frame = controls.table(context)
    own = frame[(frame.quantity == controls.PERPLEXITY) & (frame.own_rate == "yes") & (frame.model == "60m")].set_index(
        "control"
    )
    assert own.gain[controls.POET_FS] == pytest.approx(math.log(100 / 80)) and own.gain[controls.ADAMW] == 0
    assert own.gain_share[controls.FROZEN] == pytest.approx(math.log(100 / 95) / math.log(100 / 80))
    assert own.gain_shares[controls.FROZEN] == "0.230 0.230"
    assert own.published[controls.ADAMW] == 26.68 and math.isnan(own.published[controls.FROZEN])
    assert controls.answers(frame)[0] == (
        "60m, nats below AdamW: normalized initialization +0.105 (+0.151 at its best rate), AdamW at its best rate +0.041, two learning rates +0.030, embeddings, "
        "norms and head alone +0.051, to which R and P add +0.172 in POET-FS: +0.223 (+0.198 with exact merges, +0.174 with Adam's eps as the authors' optimizer has it); POET-BS +0.163."
    )
    controls.build(context)
    assert all((context.results / output).stat().st_size > 100 for output in controls.ARTIFACT.outputs)
    text = (context.results / "controls.md").read_text()
    assert "| POET without R and P | **95.00** ± 0.00 (+0.051) |" in text and text.count("\n- ") == 3


def test_equal_cost_lies_between_adamws_runs_or_has_no_number(recorded):
    context = recorded(controls.ARTIFACT, record)
    frame = controls.table(context).set_index("control")
    seconds = frame.loc["AdamW at the training time of POET FS b=1/2"]
    expected = 100 * (64 / 100) ** (math.log(700 / 480) / math.log(2))
    assert seconds.measured == pytest.approx(expected) and seconds.cost == 700 and seconds.note == ""
    outside = frame.loc["AdamW at the training time of POET BS b=256"]
    assert math.isnan(outside.measured) and (outside.n, outside.diverged) == (0, 0) and "extrapolation" in outside.note
    operations = frame.loc["AdamW at the operations of POET FS b=1/2"]
    adamw, poet = (operations_per_step(context.scale.run("60m", row, 0)) for row in ("adamw", "poet-fs-1_2"))
    assert operations.cost == 480 * poet
    assert operations.measured == pytest.approx(100 * (64 / 100) ** (math.log(poet / adamw) / math.log(2)))


def test_adamw_is_trained_longer_at_the_rate_below_its_own_and_stands_beside_poet(recorded):
    scale = load_scale({"scale": "night", "seeds": [0]})
    rates = [("adamw", {"lr": lr}, lr == 0.004) for lr in (0.001, 0.002, 0.004, 0.008)] + [("poet-fs-1_2", {"lr": 0.03, "poet_lr": 0.002}, True)]
    scale = replace(scale, rate_table=RateTable(tuple(Trial("60m", row, 3 * 58110, given, chosen, ()) for row, given, chosen in rates)))
    found = control_cells.longer(scale)
    assert [(c.control, c.own_rate, c.specs[0].parameters["lr"], c.specs[0].steps) for c in found] == [
        (controls.ADAMW, True, 0.004, 174330), (controls.ADAMW, False, 0.002, 174330), (controls.POET_FS, True, 0.03, 174330),
    ]  # fmt: skip
    assert not control_cells.longer(load_scale(MINI)), "mini tunes one length"
    named = {c.specs[0].name: value for c, value in zip(found, (40.0, 38.0, 44.0), strict=True)}
    context = recorded(controls.ARTIFACT, lambda spec: {"validation_perplexity": named.get(spec.name, 50.0)}, scale=scale)
    grounds = Grounds(context, controls.runs(scale))
    assert grounds.longer(grounds.row("60m", "adamw"), 3) == found[0].specs, "the control of a longer run takes the chosen rate, not the lower one that ends lower"
    frame = controls.table(context)
    assert frame[frame.quantity == controls.AT_LONGER].measured.tolist() == [40.0, 38.0, 44.0]
    said = "60m after 3 times the steps, in brackets nats below the first: AdamW at lr=0.004 **40.00** (+0.000), AdamW at lr=0.002 **38.00** (+0.051), POET FS b=1/2 at lr=0.03 poet_lr=0.002 **44.00** (-0.095)."
    assert controls.answers(frame)[-1] == said


@pytest.mark.parametrize("other", [{"commit": "b"}, {"machine": {"cpu": "another"}}, {"device": "A GPU"}, {"devices": 2}, {"cpu_capability": "another"}])
def test_times_of_other_commits_machines_and_devices_are_not_compared(other):
    records = [{"provenance": {"commit": "a", "machine": {"cpu": "one"}, **changed}} for changed in ({}, {}, other)]
    assert timed_alike(records[:2]) and not timed_alike(records)


def test_adamw_with_two_rates_borrows_them_where_it_was_not_tuned():
    paper = load_scale({"scale": "paper", "seeds": [0]})
    (spec,) = control_cells.specs_of(paper, "60m", controls.TWO_RATES)
    assert [spec.parameters[name] for name in ("lr", "matrix_lr")] == [paper.run("60m", row, 0).parameters["lr"] for row in ("poet-fs-1_2", "adamw")]


def test_times_of_two_machines_are_not_compared(recorded):
    """Operations are; the picture has their panel alone."""
    elsewhere = {"provenance": {"commit": "recorded", "machine": {"cpu": "another"}}}
    context = recorded(controls.ARTIFACT, lambda spec: {**record(spec), **(elsewhere if spec.steps > 480 else {})})
    frame = controls.table(context)
    assert not frame.quantity.str.contains("time").any() and frame.quantity.str.contains("equal operations").any()
    titles = [axis.get_title() for axis in controls.draw(frame, context.scale).axes]
    assert sum("at equal" in title for title in titles) == 1


def test_divergence_is_shown(recorded):
    diverged = {"validation_perplexity": math.nan}
    context = recorded(
        controls.ARTIFACT, lambda spec: diverged if spec.parameters.get("init") == "normalized" else record(spec)
    )
    frame = controls.table(context)
    line = frame[
        (frame.quantity == controls.PERPLEXITY) & (frame.control == controls.NORMALIZED) & (frame.model == "130m")
    ].iloc[0]
    assert math.isnan(line.measured) and math.isnan(line.gain) and (line.n, line.diverged) == (0, 1)
    axes = controls.draw(frame, context.scale).axes
    assert [any(text.get_text() == "diverged" for text in axis.texts) for axis in axes] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_numbers_stand_beside_the_picture_and_bars_need_seeds(recorded, drawn, seeds):
    context = recorded(controls.ARTIFACT, lambda spec: record(spec) | {"validation_perplexity": record(spec)["validation_perplexity"] + spec.seed}, seeds=seeds)
    controls.build(context)
    caption = (context.results / "figures/controls.txt").read_text()
    assert ("n = 1: no error bars." if len(seeds) == 1 else "n = 3 seeds.") in caption and "nats below AdamW" not in caption
    assert bool(error_bars(drawn[0])) == (len(seeds) > 1)
    assert [axis.get_title() for axis in drawn[0].axes][:3] == [model_label(context.scale, model) for model in ("60m", "130m", "350m")]


def test_what_is_recorded_is_drawn_legibly():
    """The axes of mini scale's own numbers, whose ticks once ran into each other."""
    frame = pd.read_csv(ROOT / "analyses/recorded/mini/controls.csv", keep_default_na=False, na_values=[""])
    figure = controls.draw(frame, load_scale(MINI))
    assert not problems(figure)


def test_runs_of_nearly_the_same_cost_have_no_ticks_that_touch():
    """A run of twice the steps may take hardly longer, on a machine that does something else at first."""
    frame = pd.read_csv(ROOT / "analyses/recorded/mini/controls.csv", keep_default_na=False, na_values=[""])
    frame.loc[(frame.control == "AdamW, 1x steps") & (frame.cost_unit == "s"), "cost"] *= 1.7
    assert not problems(controls.draw(frame, load_scale(MINI)))


def test_shares_need_an_advantage(recorded):
    context = recorded(
        controls.ARTIFACT, lambda spec: {"validation_perplexity": 90.0 if spec.method == "poet" else 80.0}
    )
    frame = controls.table(context)
    assert "POET-FS: -0.118" in controls.answers(frame)[1]
    assert frame.gain_share.isna().all()


def test_perplexity_at_a_cost_is_linear_in_logarithms():
    assert perplexity_at(2.0, [1.0, 4.0, 16.0], [64.0, 16.0, 8.0]) == pytest.approx(32.0)
    assert perplexity_at(2.0, [4.0, 1.0, 16.0], [16.0, 64.0, 8.0]) == pytest.approx(32.0)
    assert math.isnan(perplexity_at(0.9, [1.0, 4.0], [64.0, 16.0])) and math.isnan(
        perplexity_at(4.1, [1.0, 4.0], [64.0, 16.0])
    )


def test_a_run_three_times_as_long_costs_three_times_the_operations(recorded):
    context = recorded(controls.ARTIFACT, record)
    costs = [costs_of(context, specs)["operations"][0] for specs in longer_runs(context.scale, "60m").values()]
    assert costs[2] == 3 * costs[0] and costs[1] == 2 * costs[0]


def test_the_longer_runs_of_the_control_are_trained_where_their_rates_were_tuned():
    scale = load_scale({"scale": "night", "seeds": [0, 1]})
    steps = 3 * scale.settings.models["60m"].steps
    long = {"adamw": {"lr": 0.002}, "poet-fs-1_2": {"lr": 0.032, "poet_lr": 0.0005}}
    untuned = replace(scale, rate_table=RateTable(()))
    tuned = replace(scale, rate_table=RateTable(tuple(Trial("60m", row, steps, rates, True, ()) for row, rates in long.items())))

    def poet(scale):
        return [spec for spec in controls.runs(scale) if (spec.method, spec.steps) == ("poet", steps)]

    assert not poet(untuned) and [spec.seed for spec in poet(tuned)] == [0, 1]
    assert [spec.parameters["poet_lr"] for spec in poet(tuned)] == [0.0005] * 2
    grounds = Grounds(types.SimpleNamespace(scale=tuned, record=lambda spec: {"validation_perplexity": 40.0}), controls.runs(tuned))
    assert grounds.longer(grounds.row("60m", "poet-fs-1_2"), 3) == poet(tuned)
