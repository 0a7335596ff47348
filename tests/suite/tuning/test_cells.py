"""How far the tuning of a scale is, replayed over records."""

import shutil
from fractions import Fraction
from math import log2

import pytest

from analyses.tables import lr_sweep
from poet.launch.records import write_record
from poet.launch.sources import training_digest
from poet.training.errors import RunError
from suite.collection import RESULTS
from suite.context import Context
from suite.scale import load_scale
from suite.tuning.__main__ import main, selected, summary
from suite.tuning.cells import Cell, Tuning, cells, run_at

NIGHT, MINI = (load_scale({"scale": name, "seeds": [0]}) for name in ("night", "mini"))


def cell(row="poet-fs-1_2", length="1/10", model="60m"):
    return Cell(model, row, Fraction(length))


class Trials:
    """Writes the records of trials as training would, with perplexities of a known surface."""

    def __init__(self, results, scale=NIGHT):
        self.results, self.scale = results, scale

    def finish(self, wanted, surface, rounds=50):
        """Train what is asked for until nothing is."""
        for _ in range(rounds):
            tuning = Tuning(self.scale, self.results)
            waiting = tuning.trials(wanted, waiting=True)
            if not waiting:
                return tuning
            for spec in waiting:
                self.write(spec, surface(spec.parameters))
        raise AssertionError("the tuning does not end")

    def write(self, spec, perplexity, **changed):
        folder = self.results / "runs" / spec.name
        folder.mkdir(parents=True)
        code = {"training_digest": training_digest(spec.method, "cpu")}
        record = {"validation_perplexity": perplexity, "spec_digest": spec.digest, **code, **changed}
        write_record(folder / "record.json", record)


def best_at(**rates):
    """A surface over learning rates with its minimum there."""
    return lambda parameters: 20 + sum(log2(parameters[name] / value) ** 2 for name, value in rates.items())


def test_a_search_begins_where_the_next_shorter_length_ended_moved_as_the_protocol_says(tmp_path):
    shorter, longer = cell(length="1/100"), cell(length="1/30")
    tuning = Tuning(NIGHT, tmp_path)
    assert tuning.decision(longer).state == "waiting"
    tuning = Trials(tmp_path).finish([shorter], best_at(lr=0.032, poet_lr=0.008))
    assert tuning.decision(shorter).state == "finished"
    (start,) = tuning.decision(longer).next
    assert tuning.rates(longer, start) == {"lr": 0.032, "poet_lr": 0.004}


def test_the_table_of_rates_chooses_from_searches_that_ended_and_names_the_ends(tmp_path):
    trials = Trials(tmp_path)
    trials.finish([cell("adamw", "1/100")], lambda parameters: -parameters["lr"])  # the best is always the largest
    (first,) = Tuning(NIGHT, tmp_path).trials([cell("adamw", "1/30")], waiting=True)
    trials.write(first, 20.0)
    frame = lr_sweep.table(Context(NIGHT, tmp_path))
    ended = frame[frame.length == "1/100"]
    assert ended[ended.chosen == "yes"][["lr", "at_grid_end"]].values.tolist() == [[ended.lr.max(), "lr"]]
    assert frame[frame.length == "1/30"][["chosen", "at_grid_end", "state"]].values.tolist() == [["", "", "searching"]]


def test_a_larger_model_begins_where_the_smaller_one_ended(tmp_path):
    lengths = [cell("adamw", length) for length in ("1/100", "1/30", "1/10", "1/3", "1")]
    larger = cell("adamw", "1", "130m")
    assert Tuning(NIGHT, tmp_path).decision(larger).state == "waiting"
    trials = Trials(tmp_path)
    for wanted in lengths:
        tuning = trials.finish([wanted], best_at(lr=0.002))
    (start,) = tuning.decision(larger).next
    assert tuning.rates(larger, start) == {"lr": 0.002}
    assert [(tuning.budget(wanted).trials, tuning.budget(wanted).at_most) for wanted in (lengths[0], larger)] == [(12, 12), (5, 16)]


def test_a_larger_model_begins_with_the_rates_of_the_smaller_one_unmoved_and_has_fewer_trials(tmp_path):
    smaller, larger = (cell(length="1", model=model) for model in ("60m", "130m"))
    tuning = Trials(tmp_path, MINI).finish([smaller], best_at(lr=0.064, poet_lr=0.008))
    (start,) = tuning.decision(larger).next
    assert tuning.rates(larger, start) == tuning.rates(smaller, tuning.decision(smaller).best)
    assert [tuning.budget(wanted).trials for wanted in (smaller, larger)] == [12, 5]


def test_what_a_command_line_asks_for_brings_all_that_its_searches_start_from(tmp_path):
    tuning = Tuning(NIGHT, tmp_path)
    asked = selected(tuning, "60m", ["poet-fs-1_2"], ["1/3", "1"])
    assert asked == [cell(length=length) for length in ("1/100", "1/30", "1/10", "1/3", "1")]
    assert selected(tuning, "130m", ["adamw"], ["1"])[:1] == [cell("adamw", "1/100")]  # where that of the smaller model begins
    (line, counts) = summary(tuning, asked[:1]).splitlines()
    assert line.endswith("searching, 0 of 12 trials") and counts == "1 searching"
    assert summary(tuning, asked).splitlines()[-2:] == ["60m poet-fs-1_2 at 1: waits for 60m poet-fs-1_2 at 1/3", "1 searching, 4 waiting"]
    tuning = Trials(tmp_path).finish(asked, best_at(lr=0.064, poet_lr=0.004))  # nothing of it is left waiting
    assert {tuning.decision(found).state for found in asked} <= {"finished", "censored"}


def test_killed_at_any_time_it_goes_on_and_every_row_has_as_many_trials(tmp_path):
    wanted = [cell(row, "1/100") for row in ("adamw", "adamw-two-rates", "poet-fs-1_2")]
    trials = Trials(tmp_path)
    counts = []
    while waiting := Tuning(NIGHT, tmp_path).trials(wanted, waiting=True):
        spec = waiting[-1]  # only the last of a round ends before the kill
        trials.write(spec, 20.0 + spec.parameters["lr"])
        counts.append(spec.name)
    assert len(counts) == len(set(counts)) == 12 * len(wanted)
    tuning = Tuning(NIGHT, tmp_path)
    assert {len(tuning.decision(c).tried) for c in wanted} == {12}
    assert {spec.name for spec in tuning.trials(wanted)} == set(counts)


def test_a_cell_whose_best_lies_at_the_end_is_censored_and_still_a_start(tmp_path):
    shorter = cell("adamw", "1/100")
    tuning = Trials(tmp_path).finish([shorter], lambda parameters: -parameters["lr"])
    decision = tuning.decision(shorter)
    assert (decision.state, decision.open_sides) == ("censored", ((0, 1),))
    assert tuning.decision(cell("adamw", "1/30")).next == (decision.best,)


def test_where_every_trial_diverged_the_next_length_begins_as_stated(tmp_path):
    tuning = Trials(tmp_path).finish([cell("adamw", "1/100")], lambda parameters: float("nan"))
    assert tuning.decision(cell("adamw", "1/100")).best is None
    (start,) = tuning.decision(cell("adamw", "1/30")).next
    assert tuning.rates(cell("adamw"), start) == {"lr": 0.004}


def test_a_record_of_another_spec_is_none_and_a_broken_one_is_told(tmp_path):
    trials, tuning = Trials(tmp_path), Tuning(NIGHT, tmp_path)
    (spec,) = tuning.trials([cell("adamw", "1/100")], waiting=True)
    trials.write(spec, 20.0, spec_digest="0" * 64)
    assert tuning.perplexity(spec) is None
    path = tmp_path / "runs" / spec.name / "record.json"
    path.write_text(path.read_text()[:20])
    with pytest.raises(RunError, match="record.json cannot be read as a record, or was edited: remove it"):
        tuning.perplexity(spec)


def test_a_trial_of_other_code_counts_only_where_the_scale_keeps_such_runs(tmp_path):
    for name, known in (("night", True), ("mini", False)):
        scale = load_scale({"scale": name, "seeds": [0]})
        trials, tuning = Trials(tmp_path / name, scale), Tuning(scale, tmp_path / name)
        (spec,) = tuning.trials([tuning.cells[0]], waiting=True)
        trials.write(spec, 20.0, training_digest="of other code")
        assert (tuning.perplexity(spec) == 20.0) == known


def test_a_search_that_goes_on_after_its_table_was_made_is_gone_on_with(tmp_path, monkeypatch):
    """Snakemake may train stale trials again for the table: what they come to then may ask for more."""
    scale, surface, calls = load_scale({"scale": "smoke", "seeds": [0]}), [best_at(lr=0.004)], []
    trials = Trials(tmp_path / "results", scale)
    monkeypatch.chdir(tmp_path)

    def snakemake(scale, targets, cores, resume):
        calls.append(targets)
        if targets[0].endswith("lr_sweep.csv") and len(surface) == 1:
            surface.append(best_at(lr=0.032))
            shutil.rmtree(tmp_path / "results")
            (first,) = Tuning(scale, RESULTS).trials([wanted], waiting=True)
            trials.write(first, surface[-1](first.parameters))
        elif not targets[0].endswith("lr_sweep.csv"):
            for spec in Tuning(scale, RESULTS).trials([wanted], waiting=True):
                trials.write(spec, surface[-1](spec.parameters))
        return 0

    wanted = next(c for c in cells(scale) if c.row == "adamw")
    monkeypatch.setattr("suite.tuning.__main__._snakemake", snakemake)
    assert main(["--scale", "smoke", "--rows", "adamw", "--lengths", str(wanted.length)]) == 0
    assert [targets[0].endswith("lr_sweep.csv") for targets in calls].count(True) == 2 and calls[-1][0].endswith("lr_sweep.csv")
    assert not Tuning(scale, RESULTS).trials([wanted], waiting=True)


@pytest.mark.parametrize(
    ("row", "length", "expected"),
    [
        ("poet-fs-1_2", "1/100", {"merge_every": 5, "clip_ramp_steps": 0}),
        ("poet-fs-1_2", "1/10", {"merge_every": 8, "clip_ramp_steps": 0}),
        ("poet-fs-1_2", "1/3", {"merge_every": 25, "clip_ramp_steps": 1}),
        ("poet-fs-1_2", "1", {"merge_every": 76, "clip_ramp_steps": 2}),
        ("poet-fs-1_2", "3", {"merge_every": 228, "clip_ramp_steps": 6}),
        ("galore-two-rates", "1/3", {"refresh_every": 13}),
        ("adamw", "1/3", {}),
    ],
)
def test_what_is_counted_in_steps_follows_the_length(row, length, expected):
    spec = run_at(NIGHT, cell(row, length), 7, {})
    assert spec.steps == max(1, round(58110 * Fraction(length)))
    assert {name: spec.parameters[name] for name in expected} == expected
    if length not in ("1/100", "1/30", "1/10") and "merge_every" in expected:
        assert 750 <= spec.steps // spec.parameters["merge_every"] <= 780  # the paper merges 750 times


def test_an_interval_that_is_shorter_than_the_least_stays():
    smoke = load_scale({"scale": "smoke", "seeds": [0]})
    half = run_at(smoke, cell(length="1/2"), 0, {})
    assert (half.steps, half.warmup_steps, half.parameters["merge_every"]) == (3, 3, 3)


def test_trials_have_a_seed_that_tables_may_not_use(tmp_path):
    assert {spec.seed for spec in Tuning(NIGHT, tmp_path).trials(waiting=True)} == {NIGHT.protocol.seed}
