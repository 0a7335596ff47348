"""What may be asked for, and what is noticed to be gone."""

from pathlib import Path

import pytest

from poet.data.files import write_json
from poet.system.errors import UserError
from poet.system.files import write_text
from suite.__main__ import main
from suite.collection import load_suite
from suite.sources import note_path, write_note
from suite.targets import check_targets, files, lost_files, unmake_data, unmake_lost


@pytest.fixture(scope="module")
def suite():
    return load_suite({"scale": "smoke", "seeds": [0]})


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        ("results/table90.csv", "results/table9.csv"),
        ("results/tabel2.csv", "results/table2.csv"),
        ("figure10.png", "results/figures/figure10.png"),
        ("results/figure10.png", "results/figures/figure10.png"),
        ("report.html", "results/report.html"),
        ("tabel2", "results/table2.csv"),
    ],
)
def test_an_unknown_target_is_refused_with_the_nearest(suite, target, nearest):
    with pytest.raises(UserError) as refusal:
        check_targets(suite, [target])
    assert target in str(refusal.value) and f"the nearest is {nearest};" in str(refusal.value)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("results/mini/table8.csv", ("of scale mini, and smoke is asked for: add SCALE=mini",)),
        ("results/runs/smoke/7b/adamw/seed0/record.json", ("smoke/7b/adamw/seed0", "60m", "1.3b", "poet-fs-1_2", "[0]")),
        ("results/runs/smoke/60m/nosuch/seed0/record.json", ("smoke/60m/nosuch/seed0", "adamw")),
        ("results/runs/smoke/60m/adamw/seed7/record.json", ("smoke/60m/adamw/seed7", "[0]")),
    ],
)
def test_what_a_scale_does_not_have_is_refused_in_one_sentence(suite, target, words, capsys):
    with pytest.raises(UserError) as refusal:
        check_targets(suite, [target])
    assert all(word in str(refusal.value) for word in words), refusal.value
    assert main(["why", target, "--scale", "smoke"]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.startswith("error: ") and str(refusal.value) in said.err and said.err.count("\n") == 1


def test_whatever_there_is_may_be_asked_for(suite):
    check_targets(suite, ["all", "check", "data", "inputs", *suite.artifacts, *files(suite), "./results/table2.csv"])


def test_data_of_which_a_shard_is_gone_or_cut_short_are_prepared_again(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards = [{"file": f"train/{number}.npy", "file_bytes": 3} for number in range(3)]
    meta = suite.dataset / "meta.json"
    for shard in shards:
        write_text(suite.dataset / shard["file"], "abc")
    write_json(meta, {"splits": {"train": {"files": shards}, "validation": shards[0]}})
    assert not unmake_data(suite) and meta.exists()
    (suite.dataset / "train/0.npy").write_text("a")
    (suite.dataset / "train/2.npy").unlink()
    (said,) = unmake_data(suite)
    assert "3 files" in said and "train/0.npy" in said and not meta.exists()
    assert not unmake_data(suite)


def test_a_record_that_is_gone_is_asked_for_again_where_something_was_made_from_it(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [*suite.outputs("table2"), *(p for record in suite.records("table2") for p in (record, record.with_name("history.csv")))]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    write_note(note_path(suite.folder, "table2"), [], specs=suite.digests("table2"))
    assert not lost_files(suite, ["results/table2.csv"])
    gone = suite.records("table2")[3]
    gone.unlink()
    assert lost_files(suite, []) == lost_files(suite, ["all"]) == lost_files(suite, ["table2"]) == {"table2": [gone]}
    assert not lost_files(suite, ["results/table8.csv"])
    write_note(note_path(suite.folder, "table2"), [], specs=["another"])
    assert not lost_files(suite, ["table2"]), "the table is made again with other runs"
    write_note(note_path(suite.folder, "table2"), [], specs=suite.digests("table2"))
    (report,) = suite.outputs("report")
    report.touch()
    (note,) = unmake_lost(suite, ["results/table2.csv"])
    assert str(gone) in note and "table2" in note and not suite.outputs("table2")[0].exists() and report.exists()
    assert not lost_files(suite, ["table2"]), "Snakemake misses them itself"
    suite.outputs("table2")[0].touch()
    assert unmake_lost(suite, ["report"]) == [note] and not report.exists(), "it is built from the table"


def test_what_snakemake_does_not_make_of_a_finetuning_run_is_not_missed(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    specs = suite.artifacts["table12"].specs(suite.scale)
    for path in [*suite.outputs("table12"), *(Path("results/runs") / spec.name / "record.json" for spec in specs)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    write_note(note_path(suite.folder, "table12"), [], specs=suite.digests("table12"))
    assert not lost_files(suite, ["table12"])
