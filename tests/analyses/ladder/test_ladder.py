"""The ladder from runs whose perplexities are known: gaps, orders, crossings, and rungs that are not there."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from analyses.common.published import printed_text
from analyses.controls.cells import FROZEN, specs_of
from analyses.ladder import ladder
from analyses.ladder.controls import LARGER, WITHOUT, control_lines, fit_lengths
from analyses.ladder.orders import OPPOSITE, PRINTED, UNDECIDED, appears_from, crossings, printed_pairs, side
from analyses.ladder.page import markdown
from analyses.ladder.rungs import TWO_RATES, at_look, gap, larger_model, p_of_gap, rung, without_rotations
from poet.launch.records import write_record
from poet.training.errors import RunError
from suite.context import Context
from suite.fitness import FULL, FULL_BEATS_LORA, LARGER_BEATS_SMALLER, LONGER_KEEPS, LOW_RANK, POET, ROTATIONS_MOVE, SECOND_RATE_IS_LITTLE
from suite.rates import RateTable, Trial
from suite.scale import load_scale
from suite.tuning.cells import Cell
from tests.analyses.legibility import error_bars

ROWS = {"adamw": {"lr": 0.004}, "adamw-two-rates": {"lr": 0.016, "matrix_lr": 0.004}, "poet-fs-1_2": {"lr": 0.016, "poet_lr": 0.002}}
STEPS = {"1/100": 581, "1/30": 1937, "1/10": 5811}


def night(without=(), censored=(), rows=ROWS):
    """Night scale, three seeds, with rates for three rows at three lengths."""
    trials = [
        Trial("60m", row, steps, rates, True, ("lr",) if (row, length) in censored else ())
        for row, rates in rows.items()
        for length, steps in STEPS.items()
        if (row, length) not in without
    ]
    return replace(load_scale({"scale": "night", "seeds": [0, 1, 2]}), rate_table=RateTable(tuple(trials)))


def perplexity(spec):
    """AdamW 50 at every length; POET 10% above it at 1/100, undecided at 1/30, and 10% below at 1/10."""
    if spec.method != "poet":
        return 50.0 + spec.seed
    factor = {581: 1.1, 1937: 1.0 + 0.02 * (spec.seed - 1), 5811: 0.9}[spec.steps]
    return factor * (50.0 + spec.seed) * (1 + 0.001 * spec.seed)


@pytest.fixture
def built(tmp_path):
    """``built(scale, value)``: a context with a record of every run of the ladder, but for those where ``value`` is None."""

    def _built(scale, value=perplexity):
        for spec in ladder.runs(scale):
            if (found := value(spec)) is not None:
                folder = tmp_path / "runs" / spec.name
                folder.mkdir(parents=True, exist_ok=True)
                write_record(folder / "record.json", {"spec_digest": spec.digest, "validation_perplexity": found})
        return Context(scale, tmp_path)

    return _built


def page(frame):
    return markdown(frame, "Ladder", "Rows.")


def line(frame, row, length, model="60m"):
    (found,) = frame[(frame.model == model) & (frame.variant == row) & (frame.length == length)].to_dict("records")
    return found


def order_of_poet(frame):
    (found,) = frame[(frame.quantity == "printed order") & (frame.variant == "poet-fs-1_2") & (frame.against == "adamw")].to_dict("records")
    return found


def test_a_model_of_one_length_stands_beside_and_no_order_of_it_is_tested(built, drawn):
    scale = night()
    larger = [Trial("130m", row, 76294, ROWS[row], True, ()) for row in ("adamw", "poet-fs-1_2")]
    scale = replace(scale, rate_table=RateTable((*scale.rate_table.trials, *larger)))
    context = built(scale, lambda spec: (30.0 if spec.method == "adamw" else 33.0) + spec.seed if spec.model == "130m" else perplexity(spec))
    frame = ladder.table(context)
    assert line(frame, "poet-fs-1_2", "1", "130m")["gap_adamw"] == pytest.approx(sum(math.log((33 + s) / (30 + s)) for s in range(3)) / 3)
    assert "130m: share of the full length (tokens per matrix parameter); one length, so no order is tested" in page(frame)
    assert set(frame[frame.quantity != "validation perplexity"].model) == {"60m"} and set(frame.tests.dropna()) == {181}
    ladder.build(context)
    assert {axes.get_title().partition(" ")[0] for axes in drawn[-1].axes} == {"60m"}


def test_gaps_are_paired_by_seed_and_orders_stand_where_their_interval_says(built):
    frame = ladder.table(built(night()))
    long = line(frame, "poet-fs-1_2", "1/10")
    assert long["gap_adamw"] == pytest.approx(math.log(0.9) + (math.log(1.001) + math.log(1.002)) / 3)
    assert long["gap_adamw_high"] < 0 < line(frame, "poet-fs-1_2", "1/100")["gap_adamw_low"]
    assert long["gap_adamw-two-rates"] == long["gap_adamw"]  # both AdamWs end alike here
    assert line(frame, "adamw-two-rates", "1/10")["gap_adamw"] == 0
    assert math.isnan(line(frame, "adamw", "1/10")["gap_adamw"])
    assert (long["n"], long["seeds"], long["rates"], long["merges"]) == (3, "0 1 2", "tuned", 5811 // 8)
    assert long["tokens_per_parameter"] == pytest.approx(5811 * 512 / 25088)
    order = order_of_poet(frame)
    assert order["appears_from"] == "1/10" and order["crosses_between"] == "1/100 and 1/10"
    assert (order["lengths_opposite"], order["lengths_undecided"], order["lengths_as_printed"]) == ("1/100", "1/30", "1/10")
    corrected = dict(reversed(part.split(" at ")) for part in order["holm_p"].split("; "))
    assert {length for length, p in corrected.items() if float(p) <= 0.05} == {"1/100", "1/10"} and float(corrected["1/30"]) > 0.05
    said = "at 1/10, the longest at which both are compared; as printed at 1/10; opposite at 1/100; undecided at 1/30; the two cross between 1/100 and 1/10."
    assert f"POET FS b=1/2 below AdamW (printed): {said}" in page(frame)
    assert (order["lengths_mean_as_printed"], order["lengths_mean_opposite"]) == ("1/10", "1/100 1/30")
    assert "| POET FS b=1/2 below AdamW | **opposite** | opposite | **as printed** |" in page(frame)
    assert "| as printed | 0 of 1 | 0 of 1 | 1 of 1 |" in page(frame)


def test_a_second_look_halves_the_level_and_does_not_see_the_seeds_between(built):
    """At the full length both rows have six seeds: the first look has three, and the second counts only with all six. Here one of them is missing."""
    trials = [Trial("60m", row, 58110, ROWS[row], True, ()) for row in ("adamw", "poet-fs-1_2")]
    scale = replace(night(), rate_table=RateTable((*trials, Trial("130m", "adamw", 76294, ROWS["adamw"], True, ()))))
    gaps = [-0.1 + 1e-4 * seed if seed < 3 else 0.5 for seed in range(6)]

    def end(spec):
        if spec.seed == 5:
            return None
        if spec.method == "poet":
            return (50.0 + spec.seed) * math.exp(gaps[spec.seed]) * (1.2 if spec.parameters.get("budget_r") == 0 else 1)
        return (50.0 + spec.seed) * (0.7 if spec.model == "130m" else 1)

    frame = ladder.table(built(scale, end))
    p = p_of_gap({seed: (50 + seed) * math.exp(gaps[seed]) for seed in range(3)}, {seed: 50.0 + seed for seed in range(3)}, 2)
    assert p == pytest.approx(2 * p_of_gap({seed: (50 + seed) * math.exp(gaps[seed]) for seed in range(3)}, {seed: 50.0 + seed for seed in range(3)}, 1))
    assert float(order_of_poet(frame)["holm_p"].split(" at ")[0]) == pytest.approx(181 * p, rel=0.05)
    at = frame[(frame.quantity == "control") & (frame.length == "1")].set_index("variant").note
    assert at[LARGER_BEATS_SMALLER].startswith(f"{math.log(0.7):+.3f}") and at[ROTATIONS_MOVE].startswith(f"{-math.log(1.2):+.3f}")


def test_what_table_2_prints_stands_beside_the_full_length(built):
    frame = ladder.table(built(night()))
    perplexities = {row: float(printed_text("table2", "perplexity", model="60m", variant=row)) for row in ("adamw", "poet-fs-1_2")}
    for row, value in perplexities.items():
        assert line(frame, row, "1")["published"] == value
        assert line(frame, row, "1")["published_gap_adamw"] == pytest.approx(math.log(value / perplexities["adamw"]))
    assert math.isnan(line(frame, "poet-fs-1_2", "1/10")["published"]) and math.isnan(line(frame, "adamw-two-rates", "1")["published"])
    last = {row[2:].split(" |")[0]: row.split(" | ")[-1] for row in page(frame).split("tuned alike")[0].splitlines() if row.startswith("| ")}
    assert last["row"] == "printed |" and last["AdamW, two learning rates"] == "– |"
    assert (last["AdamW"], last["POET FS b=1/2"]) == ("26.68 |", "25.37 (-0.050) |")


def test_a_censored_rung_takes_part_in_no_order(built):
    context = built(night(censored={("poet-fs-1_2", "1/10")}))
    frame = ladder.table(context)
    order = order_of_poet(frame)
    assert (order["appears_from"], order["lengths_as_printed"]) == ("", "")
    assert line(frame, "poet-fs-1_2", "1/10")["rates"] == "censored"
    ladder.build(context)
    text = (context.results / "ladder.md").read_text()
    assert "does not appear by 1/30, the longest at which both are compared; opposite at 1/100; undecided at 1/30." in text  # both were measured at 1/10
    ladder.build(built(night(censored={("poet-fs-1_2", length) for length in STEPS})))
    text = (context.results / "ladder.md").read_text()
    assert "- Printed orders of two rows that share no length at which both are compared: 36 of 36." in text


def test_what_is_not_there_is_listed_and_nothing_takes_its_place(built):
    context = built(night(without={("adamw", "1/30")}), lambda spec: None if spec.seed == 2 and spec.steps == 5811 else perplexity(spec))
    frame = ladder.table(context)
    missing = line(frame, "adamw", "1/30")
    assert missing["note"] == "no learning rates yet" and math.isnan(missing["measured"])
    assert math.isnan(line(frame, "poet-fs-1_2", "1/30")["gap_adamw"])
    two = line(frame, "poet-fs-1_2", "1/10")
    assert (two["n"], two["seeds"], two["note"]) == (2, "0 1", "1 of 3 runs are missing")
    ladder.build(context)
    text = (context.results / "ladder.md").read_text()
    (bare,) = (line for line in text.splitlines() if line.startswith("- Not in the ladder, no learning rates yet: "))
    assert "60m at 1/30, 1/3, 1, 3: adamw; " in bare and "lora-r64" in bare and "| LoRA" not in text
    assert "- Not in the ladder, 1 of 3 runs are missing: 60m at 1/10: adamw, poet-fs-1_2" in text
    assert "- Printed orders of two rows that share no length at which both are compared: 35 of 36." in text
    assert "POET FS b=1/2 below AdamW (printed): does not appear by 1/10, the longest at which both are compared; opposite at 1/100; undecided at 1/10." in text
    assert all((context.results / output).stat().st_size for output in ladder.ARTIFACT.outputs)


def test_only_what_has_more_seeds_than_one_has_error_bars(built, drawn):
    for seeds, said, least in (((0,), "No error bars, n = 1 seed.", 0), ((0, 1, 2), "95% intervals elsewhere, n = 3 seeds.", 5)):
        scale = replace(night(), seeds=seeds)
        context = built(scale)
        ladder.build(context)
        assert said in (context.results / "figures/ladder.txt").read_text()
        figure = drawn[-1]
        assert error_bars(figure) >= least and bool(error_bars(figure)) == (len(seeds) > 1)
        assert [axes.get_title() for axes in figure.axes][0] == "60m proxy, 32 wide\nvalidation perplexity"


def test_a_run_that_diverged_has_no_gap_and_decides_nothing(built):
    frame = ladder.table(built(night(), lambda spec: math.nan if spec.method == "poet" and spec.seed == 1 else perplexity(spec)))
    assert line(frame, "poet-fs-1_2", "1/10")["diverged"] == 1
    order = order_of_poet(frame)
    assert order["lengths_undecided"] == "1/100 1/30 1/10"
    assert (order["lengths_mean_as_printed"], order["lengths_mean_opposite"]) == ("", "")
    assert "| POET FS b=1/2 below AdamW | – | – | – |" in page(frame)


def test_orders_are_decided_after_a_correction_for_all_of_them(built):
    """With POET 10% above AdamW by less than it scatters at two of three lengths, a 5% p-value alone is not enough."""

    def near(spec):
        return perplexity(spec) if spec.method != "poet" else (50.0 + spec.seed) * math.exp(0.02 + 0.0075 * (spec.seed - 1))

    frame = ladder.table(built(night(), near))
    order = order_of_poet(frame)
    assert all(line(frame, "poet-fs-1_2", length)["gap_adamw_low"] > 0 for length in STEPS), "each by itself is decided"
    assert (order["lengths_opposite"], order["lengths_undecided"]) == ("", "1/100 1/30 1/10")


def test_a_row_that_is_added_undoes_no_decision(built):
    """The correction is for every order that the scale plans, whatever has been trained of it."""
    few = ladder.table(built(night()))
    many = ladder.table(built(night(rows=ROWS | {"galore": {"lr": 0.032}, "lora-r64": {"lr": 0.064, "adapter_lr": 0.016}})))
    before, after = ({at: float(p) for p, at in (part.split(" at ") for part in order_of_poet(frame)["holm_p"].split("; "))} for frame in (few, many))
    assert before.keys() == after.keys() and all(after[length] <= before[length] for length in before)
    tests = {int(count) for frame in (few, many) for count in frame.tests.dropna()}
    assert tests == {5 * math.comb(9, 2) + 1}, "nine rows at five lengths, and two of them at three times the full one"
    long = p_of_gap({seed: 0.9 * (50 + seed) * (1 + 0.001 * seed) for seed in range(3)}, {seed: 50.0 + seed for seed in range(3)}, 1)
    assert before["1/10"] == pytest.approx(181 * long, rel=0.02)


def test_a_length_is_fit_where_every_known_fact_shows():
    def ends(gaps):
        return {row: {seed: 50 * math.exp(nats + 0.001 * seed) for seed in range(3)} for row, nats in gaps.items()}

    def outcomes(*lengths):
        lines = control_lines("60m", dict(zip((Fraction(1, 10), Fraction(1, 3), Fraction(1)), map(ends, lengths), strict=False)))
        return {(line["variant"], line["length"]): line["outcome"] for line in lines}, lines

    def noisy(row, scatter):
        return {seed: value * math.exp(scatter * (seed - 1)) for seed, value in ends(known)[row].items()}

    known = {FULL: 0.0, LOW_RANK: 0.2, POET: 0.1, WITHOUT: 0.4, TWO_RATES: -0.04, LARGER: -0.3}
    found, lines = outcomes(known, known)
    assert {outcome for (_, length), outcome in found.items() if length == "1/10"} == {"passed"}
    assert found[LONGER_KEEPS, "1/3"] == "not measured" and fit_lengths((line["length"], line["outcome"]) for line in lines) == ["1/10"]
    changes = {FULL_BEATS_LORA: {LOW_RANK: -0.01}, LARGER_BEATS_SMALLER: {LARGER: 0.01}, ROTATIONS_MOVE: {WITHOUT: 0.1}, SECOND_RATE_IS_LITTLE: {TWO_RATES: -0.06}}
    for name, changed in changes.items():
        found, _ = outcomes(known | changed, known)
        assert {control for (control, length), outcome in found.items() if (length, outcome) == ("1/10", "failed")} == {name}
    found, _ = outcomes(known, known | {POET: -0.1})
    assert found[LONGER_KEEPS, "1/10"] == "failed" and found[ROTATIONS_MOVE, "1/10"] == "passed"
    found, _ = outcomes({row: nats for row, nats in known.items() if row not in (WITHOUT, LARGER)}, known)
    assert found[ROTATIONS_MOVE, "1/10"] == found[LARGER_BEATS_SMALLER, "1/10"] == "not measured"
    (scattered,) = (
        line for line in control_lines("60m", {Fraction(1): ends(known) | {TWO_RATES: noisy(TWO_RATES, 0.05)}}) if line["variant"] == SECOND_RATE_IS_LITTLE
    )
    assert scattered["outcome"] == "failed", "its mean is below the threshold, its interval is not"


def test_a_longer_run_is_three_times_as_long():
    def ends(poet):
        return {row: {seed: 50 * math.exp(nats + 0.001 * seed) for seed in range(3)} for row, nats in ((FULL, 0.0), (POET, poet))}

    lines = control_lines("60m", {Fraction(1): ends(0.1), Fraction(2): ends(0.1), Fraction(3): ends(-0.1)})
    assert [line["outcome"] for line in lines if line["variant"] == LONGER_KEEPS] == ["failed", "not measured", "not measured"]


def test_no_order_is_called_judged_where_a_control_did_not_pass(built):
    context = built(night())
    ladder.build(context)
    text = (context.results / "ladder.md").read_text()
    assert "At no length has each of them passed, so the orders below are described and not judged." in text
    (facts,) = (row for row in text.splitlines() if row.startswith(f"| {SECOND_RATE_IS_LITTLE} "))
    assert facts.count("+0.000 (+0.000 to +0.000)") == 3 and facts.count("not measured") == 3


def test_poet_without_r_and_p_is_the_control_s_own_run_at_the_full_length():
    scale = replace(night(), rate_table=RateTable((Trial("60m", "poet-fs-1_2", 58110, {"lr": 0.032, "poet_lr": 0.001}, True, ()),)))
    specs = without_rotations(scale, Cell("60m", "poet-fs-1_2", Fraction(1))).specs
    assert specs == specs_of(scale, "60m", FROZEN)
    short = without_rotations(night(), Cell("60m", "poet-fs-1_2", Fraction(1, 10))).specs
    assert {(spec.steps, spec.parameters["budget_r"], spec.parameters["lr"], spec.seed) for spec in short} == {(5811, 0.0, 0.016, seed) for seed in range(3)}
    assert without_rotations(night(), Cell("60m", "adamw", Fraction(1, 10))) is None


def test_the_larger_model_is_the_next_one_at_its_own_full_length():
    larger = larger_model(night(), Cell("60m", "adamw", Fraction(1)))
    assert {(spec.model, spec.variant, spec.steps, spec.seed) for spec in larger.specs} == {("130m", "adamw", 76_294, seed) for seed in range(3)}
    for model, row, length in (("60m", "poet-fs-1_2", 1), ("60m", "adamw", Fraction(1, 3)), (list(night().models)[-1], "adamw", 1)):
        assert larger_model(night(), Cell(model, row, Fraction(length))) is None


def test_a_seed_beyond_a_planned_look_is_not_looked_at():
    ours, theirs = dict(enumerate((50.0, 51.0, 52.0, 53.0, 54.0, 55.0))), dict(enumerate((40.0, 41.0, 42.0, 43.0, 44.0)))
    assert at_look(ours, theirs, [3, 6]) == ({0: 50.0, 1: 51.0, 2: 52.0}, {0: 40.0, 1: 41.0, 2: 42.0})
    assert at_look(ours, ours, [3, 6]) == (ours, ours)
    assert at_look(ours, {1: 40.0, 4: 41.0}, [3, 6]) == ({1: 51.0, 4: 54.0}, {1: 40.0, 4: 41.0})


def test_one_seed_decides_nothing():
    assert p_of_gap({0: 40.0}, {0: 50.0}, 1) == 1.0 and side(math.log(0.8), 1.0) == UNDECIDED
    assert gap({0: 40.0}, {1: 50.0}) is None


def test_who_may_look_twice_pays_at_the_first_look_too():
    rng = np.random.default_rng(0)
    seeds = rng.normal(0.0, 0.02, (2000, 6))  # of a gap of zero
    wrong = 0
    for gaps in seeds:
        theirs, ours = dict.fromkeys(range(6), 50.0), dict(enumerate(50 * np.exp(gaps)))
        first = p_of_gap(dict(list(ours.items())[:3]), theirs, 2)
        assert first == pytest.approx(min(1.0, 2 * stats.ttest_1samp(gaps[:3], 0).pvalue))
        wrong += first <= 0.05 or p_of_gap(ours, theirs, 2) <= 0.05
    assert wrong / len(seeds) <= 0.06, "with the first look at its full level it is 0.068"


def test_the_full_length_is_table_2_s_own_run():
    scale = replace(night(), rate_table=RateTable((Trial("60m", "adamw", 58110, {"lr": 0.002}, True, ()),)))
    found = rung(scale, Cell("60m", "adamw", Fraction(1)))
    assert found.specs == [scale.run("60m", "adamw", seed) for seed in (0, 1, 2, 3, 4, 5)], "three of them are the scale's, for a second look"
    assert found.specs[0].parameters["lr"] == 0.002
    one = replace(scale, seeds=(0,))
    assert rung(one, Cell("60m", "adamw", Fraction(1))).specs == [scale.run("60m", "adamw", 0)], "there is no second look without a first"
    assert rung(scale, Cell("60m", "adamw", Fraction(1, 3))) is None


def test_smoke_has_two_rungs_without_tuning_and_mini_none(tmp_path):
    smoke = load_scale({"scale": "smoke", "seeds": [0]})
    assert {(spec.steps, spec.method) for spec in ladder.runs(smoke)} == {(3, "adamw"), (6, "adamw"), (3, "poet"), (6, "poet")}
    mini = load_scale({"scale": "mini", "seeds": [0]})
    assert ladder.runs(mini) == []
    with pytest.raises(RunError, match="scale mini has no rung of a ladder: give it lengths under `tuning`"):
        ladder.table(Context(mini, tmp_path))


@pytest.mark.parametrize(
    ("found", "start", "turns"),
    [
        ({"1/10": PRINTED, "1": PRINTED}, "1/10", []),
        ({"1/10": OPPOSITE, "1": PRINTED}, "1", [("1/10", "1")]),
        ({"1/10": PRINTED, "1": OPPOSITE}, None, [("1/10", "1")]),
        ({"1/10": PRINTED, "1": UNDECIDED}, None, []),
        ({"1/100": PRINTED, "1/10": OPPOSITE, "1": PRINTED}, "1", [("1/100", "1/10"), ("1/10", "1")]),
        ({"1/100": OPPOSITE, "1/10": UNDECIDED, "1": PRINTED}, "1", [("1/100", "1")]),
        ({}, None, []),
    ],
)
def test_an_order_appears_where_every_longer_length_shows_it_too(found, start, turns):
    sides = {Fraction(length): value for length, value in found.items()}
    assert appears_from(sides) == (start and Fraction(start))
    assert crossings(sides) == [(Fraction(a), Fraction(b)) for a, b in turns]


def test_pairs_are_those_of_the_printed_table():
    assert printed_pairs("60m", ("adamw", "poet-fs-1_2", "muon")) == [("poet-fs-1_2", "adamw")]
