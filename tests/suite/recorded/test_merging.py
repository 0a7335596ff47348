"""Packing a results folder, taking in another machine's runs, and refusals that change nothing."""

import dataclasses
from fractions import Fraction

import pytest

from poet.launch.records import write_record
from poet.system.errors import UserError
from poet.training.errors import RunError
from suite.finetuning import bases, task_data
from suite.recorded import archive
from suite.recorded.__main__ import main
from suite.recorded.merging import pack, take_in
from suite.recorded.restore import unpack
from suite.recorded.run import RecordedError, checked
from suite.scale import load_scale
from suite.tuning import finetuning
from suite.tuning.cells import Cell, Tuning, run_at
from tests.suite.recorded.conftest import finetuning_record


@pytest.fixture
def ours(tmp_path, recorded_run, specs):
    """An archive with two runs."""
    path = tmp_path / "ours.parquet"
    archive.write(path, [recorded_run(specs["60m/adamw"]), recorded_run(specs["130m/adamw"])])
    return path


@pytest.fixture
def theirs(tmp_path):
    """``theirs(*runs)``: the path of an archive of another machine."""

    def _write(*runs):
        archive.write(tmp_path / "theirs.parquet", runs)
        return tmp_path / "theirs.parquet"

    return _write


def test_runs_that_are_not_in_the_results_stay(ours, write_run, specs, tmp_path):
    write_run(tmp_path, specs["60m/adamw"], loss=1.0)
    write_run(tmp_path, specs["60m/poet-fs-1_2"])
    assert pack(tmp_path, "smoke", [0], ours) == [f"{ours}: 3 runs, 2 of them new"]
    assert b",1.0," in archive.read(ours)["smoke/60m/adamw/seed0"].files["history.csv"]
    before = ours.stat().st_mtime_ns
    assert pack(tmp_path, "smoke", [0], ours) == [f"{ours}: 3 runs, 0 of them new"] and ours.stat().st_mtime_ns == before


@pytest.fixture
def trial():
    """A trial of the smoke scale's tuning, with a rate."""
    scale = load_scale({"scale": "smoke", "seeds": [0]})
    return lambda lr, length="1/2": run_at(scale, Cell("60m", "adamw", Fraction(length)), scale.protocol.seed, {"lr": lr})


def test_trials_stay_and_join_though_the_search_lies_elsewhere(ours, theirs, write_run, recorded_run, specs, trial, tmp_path):
    archive.write(ours, [recorded_run(specs["60m/adamw"]), recorded_run(trial(0.004)), recorded_run(trial(0.008))])
    write_run(tmp_path, specs["130m/adamw"])
    assert pack(tmp_path, "smoke", [0], ours) == [f"{ours}: 4 runs, 1 of them new"]
    assert take_in(theirs(recorded_run(trial(0.002))), "lab-b", ours) == f"{ours}: 5 runs, 1 of them new"


def test_trials_of_a_results_folder_elsewhere_are_packed(write_run, tmp_path):
    scale = load_scale({"scale": "smoke", "seeds": [0]})
    first = Tuning(scale, tmp_path).trials(waiting=True)
    for spec in first:
        write_run(tmp_path, spec, validation_perplexity=9.0)
    second = Tuning(scale, tmp_path).trials(waiting=True)
    folder = write_run(tmp_path, second[0], validation_perplexity=9.0)  # a round that has not ended
    assert len(second) > 1 and pack(tmp_path, "smoke", [0], tmp_path / "new.parquet")[-1].endswith(f"{len(first) + 1} of them new")
    whole = (folder / "record.json").read_text()
    for text in ("{", whole.replace("9.0", "8.0"), whole.replace(f'"steps": {second[0].steps}', '"steps": 7')):
        assert text != whole
        (folder / "record.json").write_text(text)
        with pytest.raises(RunError, match=f"{folder}.* was edited: remove it"):
            pack(tmp_path, "smoke", [0], tmp_path / "new.parquet")


@pytest.mark.parametrize("first", [0, 2])
def test_trials_of_finetuning_are_packed_and_stay_unless_they_are_of_another_search(first, recorded_run, tmp_path):
    scale, path = load_scale({"scale": "smoke", "seeds": [first]}), tmp_path / "runs.parquet"
    base, _ = bases(scale)
    new, old = finetuning.trial(scale, base, "rte", "oft", 0.004), finetuning.trial(scale, base, "cola", "full", 0.001)
    stale = dataclasses.replace(new, lr=0.002, data=task_data(scale.settings.finetuning))  # measured on the reported examples

    def written(results, spec):
        write_record(file := tmp_path / results / "runs" / spec.name / "record.json", finetuning_record(spec))
        return checked({"record.json": file.read_bytes()})

    archive.write(path, [recorded_run(base), written("elsewhere", old), written("elsewhere", stale)])
    written("here", new)
    written("here", stale)
    dropped, counts = pack(tmp_path / "here", "smoke", [first], path, drop=True)
    assert counts.endswith("1 of them new") and {*archive.read(path)} == {base.name, new.name, old.name} and stale.name in dropped


def test_a_trial_of_another_batch_is_dropped(ours, recorded_run, specs, trial, tmp_path):
    stale = dataclasses.replace(trial(0.004), batch_rows=16)
    archive.write(ours, [recorded_run(specs["60m/adamw"]), recorded_run(stale)])
    dropped, counts = pack(tmp_path, "smoke", [0], ours, drop=True)
    assert ": 1 runs" in counts and stale.name in dropped


def test_nothing_to_pack_writes_nothing(tmp_path):
    assert ": 0 runs" in pack(tmp_path, "smoke", [0], tmp_path / "runs.parquet")[-1]
    assert not (tmp_path / "runs.parquet").exists()


def test_what_cannot_be_packed_is_left_out_with_its_reason(write_run, specs, tmp_path):
    (write_run(tmp_path, specs["130m/adamw"]) / "history.csv").unlink()
    other = dataclasses.replace(specs["350m/adamw"], steps=7, warmup_steps=0)
    write_run(tmp_path, other)
    write_run(tmp_path, specs["60m/poet-fs-1_2"])
    *left_out, counts = pack(tmp_path, "smoke", [0], tmp_path / "runs.parquet")
    assert ": 1 runs" in counts
    assert "1 runs have no history.csv, such as smoke/130m/adamw/seed0: left out" in left_out
    assert any("of another spec than today's, such as smoke/350m/adamw/seed0" in note for note in left_out)


def test_an_edited_record_is_not_packed_and_the_archive_stays(ours, write_run, specs, tmp_path):
    folder = write_run(tmp_path, specs["60m/poet-fs-1_2"])
    (folder / "record.json").write_text((folder / "record.json").read_text().replace("completed", "diverged"))
    before = ours.read_bytes()
    with pytest.raises(RecordedError, match=f"{folder}: the record of run .* was edited .*: remove this folder and train"):
        pack(tmp_path, "smoke", [0], ours)
    assert ours.read_bytes() == before


def test_runs_that_nothing_asks_for_are_dropped_only_if_asked(recorded_run, write_run, specs, tmp_path):
    gone, path = recorded_run(dataclasses.replace(specs["60m/adamw"], variant="gone")), tmp_path / "runs.parquet"
    archive.write(path, [gone])
    write_run(tmp_path, specs["60m/adamw"])
    before = path.read_bytes()
    with pytest.raises(RecordedError, match="1 recorded runs are of specs .* such as smoke/60m/gone/seed0: put config/ and the code back .* DROP=1"):
        pack(tmp_path, "smoke", [0], path)
    assert path.read_bytes() == before
    dropped, counts = pack(tmp_path, "smoke", [0], path, drop=True)
    assert ": 1 runs" in counts and "such as smoke/60m/gone/seed0: dropped" in dropped


def test_another_machine_s_runs_come_in_marked_and_stay_marked(ours, theirs, recorded_run, specs, tmp_path):
    own = archive.read(ours)
    foreign = recorded_run(specs["60m/poet-fs-1_2"])
    assert take_in(theirs(own["smoke/60m/adamw/seed0"], foreign), "lab-b", ours) == f"{ours}: 3 runs, 1 of them new"
    merged = archive.read(ours)
    assert {name: run.origin for name, run in merged.items() if run.origin} == {foreign.name: "lab-b"}
    # Restored somewhere, and packed again from there.
    unpack(merged[foreign.name], tmp_path / "runs" / foreign.name)
    pack(tmp_path, "smoke", [0], tmp_path / "again.parquet")
    assert [run.origin for run in archive.read(tmp_path / "again.parquet").values()] == ["lab-b"]


@pytest.fixture
def refused(ours):
    """``refused(file, words)``: it is not taken in, the sentence has the words, and our archive is as it was."""

    def _refused(file, *words, label="lab-b"):
        before = ours.read_bytes()
        with pytest.raises(UserError) as caught:
            take_in(file, label, ours)
        assert all(word in str(caught.value) for word in words) and "\n" not in str(caught.value), str(caught.value)
        assert ours.read_bytes() == before and not list(ours.parent.glob(".*.part"))

    return _refused


def test_one_run_with_different_bytes_is_refused(refused, theirs, recorded_run, specs):
    refused(theirs(recorded_run(specs["60m/adamw"], loss=4.0)), "both have run smoke/60m/adamw/seed0, with different bytes", "keep one")


def test_a_cut_archive_is_refused(refused, theirs, recorded_run, specs):
    file = theirs(recorded_run(specs["60m/poet-fs-1_2"]))
    file.write_bytes(file.read_bytes()[:-50])
    refused(file, "cut short")


def test_an_unknown_scale_is_refused(refused, theirs, recorded_run, specs):
    refused(theirs(recorded_run(dataclasses.replace(specs["60m/adamw"], scale="huge"))), "there is no scale 'huge'")


def test_several_scales_are_refused(refused, theirs, recorded_run, specs):
    spec = specs["60m/adamw"]
    refused(theirs(recorded_run(spec), recorded_run(dataclasses.replace(spec, scale="mini"))), "2 scales (mini, smoke)")


@pytest.mark.parametrize("change", ({"steps": 7}, {"variant": "mine"}), ids=("another spec", "another name"))
def test_what_nothing_asks_for_today_is_refused(refused, theirs, recorded_run, specs, change):
    refused(theirs(recorded_run(dataclasses.replace(specs["60m/poet-fs-1_2"], **change))), "nothing asks for today", "train it with this version")


def test_an_empty_archive_and_one_from_nowhere_are_refused(refused, theirs, recorded_run, specs):
    refused(theirs(), "0 scales")
    for label in (" ", "lab\n# b", "<b>lab</b>", "a|b"):
        refused(theirs(recorded_run(specs["60m/poet-fs-1_2"])), "--origin", label=label)


def test_the_command_says_it_in_one_line(tmp_path, capsys):
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    assert main(["import", str(tmp_path / "x.parquet"), "--origin", "x"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
