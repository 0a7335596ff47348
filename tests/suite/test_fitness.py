"""The controls that a scale has to pass, on made-up runs: each passes, fails, and is not measured."""

import dataclasses
import math
import types

import pytest

from analyses.tables.table2.claims import confounders
from suite import fitness
from suite.fitness import CONTROLS, NEEDS, readings, scatter_passes
from suite.grounds import Grounds, Sweep, row_of, subject_of
from suite.rates import RateTable, read_rates
from suite.scale import load_scale

SEEDS = (0, 1, 2)
SCATTER = (-0.1, 0.0, 0.1)
#: What scatters the other way than the rest: paired differences do not cancel.
TURNED = ("lora-r64", "without")
#: Perplexities of a scale that is fit, by model and variant; "60m" and "130m" alone are trained.
FIT = {
    ("60m", "adamw"): 50.0,
    ("60m", "lora-r64"): 60.0,
    ("60m", "poet-fs-1_2"): 48.0,
    ("60m", "without"): 55.0,
    ("60m", "adamw-two-rates"): 49.0,
    ("60m", "adamw long"): 45.0,
    ("60m", "poet long"): 42.0,
    ("130m", "adamw"): 40.0,
}


@pytest.fixture(scope="module")
def scale():
    return load_scale({"scale": "mini", "seeds": list(SEEDS)})


def runs_of(scale, model, name):
    steps = 3 * scale.settings.models[model].steps
    row, options = {
        "without": ("poet-fs-1_2", {"overrides": {"budget_r": 0.0, "budget_p": 0.0, "lr": 0.5}}),  # at another rate
        "adamw long": ("adamw", {"steps": steps}),
        "poet long": ("poet-fs-1_2", {"steps": steps, "overrides": {"poet_lr": 0.123, "merge_every": 15}}),
    }.get(name, (name, {}))
    return [scale.run(model, row, seed, **options) for seed in SEEDS]


def swept(scale, table):
    return Sweep(dataclasses.replace(scale, rate_table=read_rates(table, table.parent)))


@pytest.fixture
def grounds(scale, tmp_path):
    """``grounds(changes, sweep)``: of :data:`FIT` with changes, None for a run that was not trained; (model, name, "noise") has
    how much more it scatters."""

    def _grounds(changes=(), sweep=()):
        ends, changes = {}, dict(changes)
        noisy = {key[:2]: changes.pop(key) for key in list(changes) if key[2:] == ("noise",)}
        for (model, name), value in {**FIT, **changes}.items():
            for spec, noise in zip(runs_of(scale, model, name), SCATTER, strict=True):
                if value is not None:
                    ends[spec] = value + noise * noisy.get((model, name), 1) * (-1 if name in TURNED else 1)
        context = types.SimpleNamespace(scale=scale, record=lambda spec: {"validation_perplexity": ends[spec]})
        table = tmp_path / "sweep.csv"
        names = ("model", "variant", "lr", "poet_lr", "perplexity", "chosen", "at_grid_end", "state")
        table.write_text("\n".join(",".join(map(str, line)) for line in (names, *sweep)))
        found = Grounds(context, ends)
        found.sweep = swept(scale, table)
        return found

    return _grounds


def subject(scale, *settings):
    """The subject of runs by (model, row) and, where it is changed, what is changed."""
    return subject_of([scale.run(model, row, 0, overrides=dict(*changed)) for model, row, *changed in settings])


def read(grounds, name, about=None):
    about = about or subject(grounds.scale, ("60m", "poet-fs-1_2"), ("60m", "adamw"))
    return readings(grounds, about, [name])[name]


@pytest.mark.parametrize(
    ("name", "failing", "missing"),
    [
        (fitness.FULL_BEATS_LORA, {("60m", "lora-r64"): 45.0}, {("60m", "lora-r64"): None}),
        (fitness.LARGER_BEATS_SMALLER, {("130m", "adamw"): 51.0}, {("130m", "adamw"): None}),
        (fitness.ROTATIONS_MOVE, {("60m", "without"): 48.1}, {("60m", "without"): None}),
        (fitness.SECOND_RATE_IS_LITTLE, {("60m", "adamw-two-rates"): 40.0}, {("60m", "adamw-two-rates"): None}),
        (fitness.LONGER_KEEPS, {("60m", "poet long"): 46.0}, {("60m", "poet long"): None}),
    ],
)
def test_a_control_of_runs_passes_fails_and_is_not_measured(grounds, name, failing, missing):
    assert read(grounds(), name).outcome == "passed"
    assert read(grounds(failing), name).outcome == "failed"
    assert read(grounds(missing), name).outcome == "not measured"


def test_a_difference_within_its_interval_does_not_come_out_as_known(grounds):
    found = read(grounds({("60m", "lora-r64"): 50.5}), fitness.FULL_BEATS_LORA)
    # Differences of -0.7, -0.5 and -0.3: 4.303 times 0.2 / root 3 either side.
    assert found.outcome == "passed" and found.measured == "60m -0.50 (-1.00 to -0.00)"
    assert read(grounds({("60m", "lora-r64"): 50.49}), fitness.FULL_BEATS_LORA).outcome == "failed"


def test_thresholds_are_the_constants(grounds):
    worth = 50 * math.exp(-fitness.SECOND_RATE)
    assert read(grounds({("60m", "adamw-two-rates"): worth + 0.1}), fitness.SECOND_RATE_IS_LITTLE).outcome == "passed"
    assert read(grounds({("60m", "adamw-two-rates"): worth - 0.1}), fitness.SECOND_RATE_IS_LITTLE).outcome == "failed"
    assert read(grounds({("60m", "adamw-two-rates", "noise"): 30}), fitness.SECOND_RATE_IS_LITTLE).outcome == "failed", "it cannot be ruled out"
    assert scatter_passes(0.99, 3.0) and not scatter_passes(1.0, 3.0) and not scatter_passes(math.nan, 3.0)


def test_what_scatter_explains_has_not_passed(grounds):
    for name, noisy in ((fitness.ROTATIONS_MOVE, "without"), (fitness.LONGER_KEEPS, "poet long"), (fitness.LONGER_KEEPS, "poet-fs-1_2")):
        assert read(grounds(), name).outcome == "passed"
        assert read(grounds({("60m", noisy, "noise"): 50}), name).outcome == "failed"


def test_each_neighbour_in_size_has_to_differ(scale, grounds):
    about = subject(scale, ("130m", "adamw"))
    assert read(grounds({("350m", "adamw"): 30.0}), fitness.LARGER_BEATS_SMALLER, about).outcome == "passed"
    found = read(grounds({("350m", "adamw"): 41.0}), fitness.LARGER_BEATS_SMALLER, about)
    assert found.outcome == "failed" and "350m against 130m" in found.measured and "130m against 60m" in found.measured


def test_one_seed_has_no_interval(scale, grounds):
    one = grounds()
    one.scale = load_scale({"scale": "mini", "seeds": [0]})
    found = read(one, fitness.FULL_BEATS_LORA)
    assert (found.outcome, found.measured) == ("not measured", "60m one seed: no interval")


def test_a_run_that_diverged_fails_what_needs_it(grounds):
    for name in (fitness.FULL_BEATS_LORA, fitness.LARGER_BEATS_SMALLER):
        assert read(grounds({("60m", "adamw"): math.nan, ("130m", "adamw"): math.nan}), name).outcome == "failed"


def test_a_longer_run_that_diverged_keeps_no_sign():
    ahead, behind, diverged = (0.2, 0.1, 0.3), (-0.2, -0.3, -0.1), (-math.inf, math.nan, math.nan)
    assert fitness.on_one_side(ahead, ahead) and fitness.on_one_side(behind, behind)
    assert not any(fitness.on_one_side(*pair) for pair in ((ahead, behind), (ahead, diverged), (behind, diverged), (diverged, behind)))


def test_every_model_of_a_subject_has_to_pass(scale, grounds):
    both = subject(scale, ("60m", "adamw"), ("130m", "adamw"))
    found = read(grounds(), fitness.FULL_BEATS_LORA, both)
    assert found.outcome == "not measured" and "130m not among these runs" in found.measured
    assert read(grounds({("60m", "lora-r64"): 1.0}), fitness.FULL_BEATS_LORA, both).outcome == "failed"


def test_r_and_p_are_asked_of_poet_alone(scale, grounds):
    assert readings(grounds(), subject(scale, ("60m", "adamw")), [fitness.ROTATIONS_MOVE]) == {}
    assert subject(scale, ("60m", "poet-bs-b256", {"init": "xavier"})).has_poet and not subject(scale, ("60m", "muon")).has_poet


SWEEP = [
    ("60m", "adamw", 0.001, "", 52, "", "", ""),
    ("60m", "adamw", 0.002, "", 50, "yes", "", ""),
    ("60m", "adamw", 0.004, "", 51, "", "", ""),
    ("60m", "poet-fs-1_2", 0.001, 0.1, 49, "", "", ""),
    ("60m", "poet-fs-1_2", 0.002, 0.1, 48, "yes", "", ""),
    ("60m", "poet-fs-1_2", 0.004, 0.1, 49.5, "", "", ""),
    ("60m", "poet-fs-1_2", 0.004, 0.2, 99, "", "", ""),  # two rates away: no neighbour
]


def changed(place, **cells):
    names = ("model", "variant", "lr", "poet_lr", "perplexity", "chosen", "at_grid_end", "state")
    return [tuple(cells.get(n, c) for n, c in zip(names, line, strict=True)) if i == place else line for i, line in enumerate(SWEEP)]


def test_chosen_rates_inside_at_an_end_and_not_swept(scale, grounds, tmp_path):
    assert read(grounds(sweep=SWEEP), fitness.RATES_INSIDE).outcome == "passed"
    ended = read(grounds(sweep=changed(4, at_grid_end="lr")), fitness.RATES_INSIDE)
    assert (ended.outcome, ended.measured) == ("failed", "60m/poet-fs-1_2 at the end of lr")
    assert read(grounds(sweep=SWEEP[3:]), fitness.RATES_INSIDE).outcome == "not measured"
    assert read(grounds(sweep=SWEEP), fitness.RATES_INSIDE, subject(scale, ("350m", "adamw"))).outcome == "not measured"
    # Each length has its own search; a longer run of the row is no changed setting.
    steps = scale.settings.models["60m"].steps
    lengths = [scale.run("60m", "adamw", 0, steps=factor * steps) for factor in (1, 3)]
    lines = [("model", "variant", "steps", "lr", "perplexity", "chosen", "at_grid_end"), ("60m", "adamw", steps, 1e-3, 9, "yes", "lr"), ("60m", "adamw", 3 * steps, 1e-3, 9, "yes", "")]
    (table := tmp_path / "lengths.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
    found = grounds()
    found.sweep = swept(scale, table)
    for order in (lengths, lengths[::-1]):
        reading = read(found, fitness.RATES_INSIDE, subject_of(order))
        assert (reading.outcome, reading.measured) == ("failed", "60m/adamw at the end of lr")
    changed_too = subject(scale, ("60m", "poet-fs-1_2"), ("60m", "poet-fs-1_2", {"init": "xavier"}), ("60m", "poet-fs-1_2", {"merge_every": 7}), ("60m", "poet-fs-1_2", {"lr": 0.5}))
    assert read(grounds(sweep=SWEEP), fitness.RATES_INSIDE, changed_too).measured == "60m/poet-fs-1_2 inside; settings without a search of their own: 2"


def test_signs_at_neighbouring_rates(scale, grounds):
    assert read(grounds(sweep=SWEEP), fitness.NEIGHBOURS_KEEP).outcome == "passed"
    turned = read(grounds(sweep=changed(5, perplexity=50.5)), fitness.NEIGHBOURS_KEEP)  # above AdamW's 50
    assert turned.outcome == "failed" and turned.measured.endswith("turns at 1 of 4 neighbours")
    assert read(grounds(sweep=changed(5, perplexity="")), fitness.NEIGHBOURS_KEEP).outcome == "failed"  # it diverged
    assert read(grounds(sweep=SWEEP[:3]), fitness.NEIGHBOURS_KEEP).outcome == "not measured"
    settings = subject(scale, ("60m", "poet-fs-1_2", {"init": "xavier"}), ("60m", "poet-fs-1_2"))  # one sweep for both: nothing beside it
    assert read(grounds(sweep=SWEEP), fitness.NEIGHBOURS_KEEP, settings).outcome == "not measured"


def test_a_table_without_trials_or_without_a_file_has_tuned_nothing(scale, tmp_path):
    table = tmp_path / "sweep.csv"
    table.write_text("model,variant,lr,poet_lr,chosen,source\n60m,adamw,1e-2,,yes,Table 10\n")
    untuned = Sweep(dataclasses.replace(scale, rate_table=RateTable()))
    assert swept(scale, table).chosen(scale.run("60m", "adamw", 0)) is untuned.chosen(scale.run("60m", "adamw", 0)) is None


def test_trials_of_a_run_s_own_length_count_and_what_is_borrowed_says_nothing(scale, tmp_path):
    table, steps = tmp_path / "sweep.csv", scale.settings.models["60m"].steps
    lines = (f"60m,adamw,{3 * steps},1e-3,9,yes,lr", f"60m,adamw,{steps},2e-3,9,yes,", "350m,galore,,1e-3,9,yes,lr")
    table.write_text("\n".join(("model,variant,steps,lr,perplexity,chosen,at_grid_end", *lines)))
    sweep = swept(scale, table)
    assert sweep.chosen(scale.run("60m", "adamw", 0)).rates == {"lr": 2e-3} and sweep.chosen(scale.run("130m", "adamw", 0)) is None
    assert sweep.chosen(scale.run("60m", "adamw", 0, steps=3 * steps)).rates == {"lr": 1e-3} and sweep.chosen(scale.run("60m", "adamw", 0, steps=2 * steps)) is None
    assert sweep.chosen(scale.run("60m", "galore", 0)) is None and sweep.chosen(scale.run("350m", "galore", 0)).open_sides == ("lr",)
    assert sweep.neighbours(sweep.chosen(scale.run("60m", "adamw", 0))) == []  # those of another length are none


def test_subjects_name_models_settings_and_pairs(scale):
    poet, adamw = (scale.run("60m", row, 0) for row in ("poet-fs-1_2", "adamw"))
    found = subject_of([poet, adamw, poet])
    assert found.models == ("60m",) and found.settings == (poet, adamw)
    assert found.pairs == ((adamw, poet),)  # each with the first, where no pairs are named
    assert subject_of([poet, adamw], [(poet, adamw)]).pairs == ((poet, adamw),)
    assert row_of("poet-bs-b256-init=xavier") == "poet-bs-b256" and row_of("adamw-two-rates-lr=1") == "adamw-two-rates"


def test_the_best_of_several_runs_is_taken(scale, grounds):
    other = [scale.run("60m", "adamw-two-rates", seed, overrides={"lr": 0.077}) for seed in SEEDS]
    found = grounds()
    found._runs |= {spec.name: spec for spec in other}
    found._ends |= {spec.name: 47.0 for spec in other}
    assert found.other_method(found.row("60m", "adamw"), "adamw-two-rates") == other


def test_a_variant_of_which_a_run_diverged_is_not_the_best(scale, grounds, monkeypatch):
    other = [scale.run("60m", "adamw-two-rates", seed, overrides={"lr": 0.077}) for seed in SEEDS]
    found = grounds()
    record = found._context.record
    monkeypatch.setattr(found._context, "record", lambda spec: {"validation_perplexity": math.nan} if spec in other else record(spec))
    found._runs = {spec.name: spec for spec in other} | found._runs
    assert {spec.name for spec in found.other_method(found.row("60m", "adamw"), "adamw-two-rates")}.isdisjoint(spec.name for spec in other)


def test_orders_need_every_control_and_what_is_about_one_training_fewer():
    names, own = {control.name for control in CONTROLS}, {fitness.ROTATIONS_MOVE, fitness.RATES_INSIDE}
    needs = {"ordering": names, "rank agreement": names - {fitness.LITTLE_SCATTER}, "finetuning": {fitness.LITTLE_SCATTER}}
    needs |= dict.fromkeys(("number", "trend", "phase", "bound", "invariance"), own) | dict.fromkeys(("divergence", "convergence", "timing"), set())
    assert {kind: set(needed) for kind, needed in NEEDS.items()} == needs


def test_what_could_explain_that_poet_is_below_adamw(grounds):
    two_rates, rotations = confounders("60m", "poet-fs-1_2")
    assert two_rates.measure(grounds()).effect == pytest.approx(48 - 49)
    assert rotations.measure(grounds()).effect == pytest.approx((48 - 55) - (55 - 50))
    assert two_rates.measure(grounds({("60m", "adamw-two-rates"): None})) is rotations.measure(grounds({("60m", "without"): None})) is None
