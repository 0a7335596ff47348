"""What may be asked for, and what is noticed to be gone."""

from pathlib import Path

import pytest

from poet.data.files import write_json
from poet.system.errors import UserError
from poet.system.files import write_text
from suite.__main__ import main
from suite.sources import note_path, write_note
from suite.targets import check_targets, checked_tables, files, lost_files, unmake_data, unmake_lost


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        ("results/table90.csv", "results/table9.csv"),
        ("results/tabel2.csv", "results/table2.csv"),
        ("figure10.png", "results/figures/figure10.png"),
        ("results/figure10.png", "results/figures/figure10.png"),
        ("results/figures/figure99.pdf", "results/figures/figure9.pdf"),
        ("report.html", "results/report.html"),
        ("tabel2", "results/table2.csv"),
    ],
)
def test_an_unknown_target_is_refused_with_the_nearest(smoke, target, nearest):
    with pytest.raises(UserError) as refusal:
        check_targets(smoke, [target])
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
def test_what_a_scale_does_not_have_is_refused_in_one_sentence(smoke, target, words, capsys):
    with pytest.raises(UserError) as refusal:
        check_targets(smoke, [target])
    assert all(word in str(refusal.value) for word in words), refusal.value
    assert main(["why", target, "--scale", "smoke"]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.startswith("error: ") and str(refusal.value) in said.err and said.err.count("\n") == 1


def test_whatever_there_is_may_be_asked_for(smoke):
    check_targets(smoke, ["all", "check", "data", "inputs", *smoke.artifacts, *files(smoke), "./results/table2.csv"])


def test_data_of_which_a_shard_is_gone_or_cut_short_are_prepared_again(smoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards = [{"file": f"train/{number}.npy", "file_bytes": 3} for number in range(3)]
    meta = smoke.dataset / "meta.json"
    for shard in shards:
        write_text(smoke.dataset / shard["file"], "abc")
    write_json(meta, {"splits": {"train": {"files": shards}, "validation": shards[0]}})
    assert not unmake_data(smoke) and meta.exists()
    (smoke.dataset / "train/0.npy").write_text("a")
    (smoke.dataset / "train/2.npy").unlink()
    (said,) = unmake_data(smoke)
    assert "3 files" in said and "train/0.npy" in said and not meta.exists()
    assert not unmake_data(smoke)


def test_a_record_that_is_gone_is_asked_for_again_where_something_was_made_from_it(smoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [*smoke.outputs("table2"), *(p for record in smoke.records("table2") for p in (record, record.with_name("history.csv")))]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    write_note(note_path(smoke.folder, "table2"), [], specs=smoke.digests("table2"))
    assert not lost_files(smoke, ["results/table2.csv"])
    gone = smoke.records("table2")[3]
    gone.unlink()
    assert lost_files(smoke, []) == lost_files(smoke, ["all"]) == lost_files(smoke, ["table2"]) == {"table2": [gone]}
    assert not lost_files(smoke, ["results/table8.csv"])
    write_note(note_path(smoke.folder, "table2"), [], specs=["another"])
    assert not lost_files(smoke, ["table2"]), "the table is made again with other runs"
    write_note(note_path(smoke.folder, "table2"), [], specs=smoke.digests("table2"))
    (report,) = smoke.outputs("report")
    report.touch()
    (note,) = unmake_lost(smoke, ["results/table2.csv"])
    assert str(gone) in note and "table2" in note and not smoke.outputs("table2")[0].exists() and report.exists()
    assert not lost_files(smoke, ["table2"]), "Snakemake misses them itself"
    smoke.outputs("table2")[0].touch()
    assert unmake_lost(smoke, ["report"]) == [note] and not report.exists(), "it is built from the table"


def test_a_table_of_other_runs_is_not_checked(smoke, tmp_path, monkeypatch):
    """The ladder is made by name alone, and may be of other seeds than the check."""
    monkeypatch.chdir(tmp_path)
    for path in smoke.outputs("ladder"):
        write_text(path, "")
    for specs, place in ((smoke.digests("ladder"), 0), (["of another seed"], 1)):
        write_note(note_path(smoke.folder, "ladder"), [], specs=specs)
        assert "ladder.csv" in checked_tables(smoke)[place] and "ladder.csv" not in checked_tables(smoke)[1 - place]
    assert "table2.csv" in checked_tables(smoke)[0] and "lr_sweep.csv" not in sum(checked_tables(smoke), [])


def test_what_snakemake_does_not_make_of_a_finetuning_run_is_not_missed(smoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    specs = smoke.artifacts["table12"].specs(smoke.scale)
    for path in [*smoke.outputs("table12"), *(Path("results/runs") / spec.name / "record.json" for spec in specs)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    write_note(note_path(smoke.folder, "table12"), [], specs=smoke.digests("table12"))
    assert not lost_files(smoke, ["table12"])
