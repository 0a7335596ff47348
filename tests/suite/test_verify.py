"""``make verify``: every file of every run, and what was made from files that are gone."""

import shutil

import pytest

from poet.data.files import sha256_of
from poet.launch.records import weights_files, write_history, write_record
from suite import verify
from suite.__main__ import main
from suite.collection import load_suite
from suite.sources import note_path, write_note


@pytest.fixture
def run(tmp_path, monkeypatch, repository):
    """The folder of a whole run in ``results/``."""
    (tmp_path / "config").symlink_to(repository / "config")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verify, "archive_path", lambda scale: tmp_path / scale)
    folder = tmp_path / "results" / "runs" / "smoke" / "60m" / "adamw" / "seed0"
    history = write_history(folder / "history.csv", [{"step": 1, "train_loss": 50.25}])
    write_record(folder / "record.json", {"validation_perplexity": 50.25, "history_sha256": history})
    return folder


def test_a_whole_folder_is_whole(run, capsys):
    assert main(["verify"]) == 0
    assert capsys.readouterr().out == "1 runs in results/runs, 0 archives of recorded runs: each whole\n"


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("record.json", b"40.25", "record.json was edited after it was written"),
        ("history.csv", b"40.25", "history.csv is not the one that the record was written with"),
        ("record.json", None, "has files of a run and no record"),
        ("history.csv", None, "history.csv is gone"),
        ("summaries.jsonl", b"", "summaries.jsonl is not the one that the record was written with"),
        ("probes.npz", b"", "probes.npz is not the one that the record was written with"),
    ],
)
def test_what_was_edited_or_removed_is_named_with_the_remedy(run, capsys, file, change, words):
    if change is None:
        (run / file).unlink()
    else:
        (run / file).touch()
        (run / file).write_bytes((run / file).read_bytes().replace(b"50.25", change))
    assert main(["verify"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ") and words in error
    assert error.endswith(": remove results/runs/smoke/60m/adamw/seed0; what needs it makes it again")


def test_weights_that_were_changed_are_named_and_a_run_may_lack_its_weights(run, capsys):
    weights = run / "weights" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"weights")
    write_record(run / "record.json", {"weights_files": weights_files(weights.parent), "history_sha256": sha256_of(run / "history.csv")})
    assert main(["verify"]) == 0
    weights.write_bytes(b"others")
    assert main(["verify"]) == 1
    assert "weights/model.safetensors is not the one that the record was written with: remove " in capsys.readouterr().err
    shutil.rmtree(weights.parent)
    assert main(["verify"]) == 0


@pytest.mark.parametrize("name", ["finetuned/cola/60m-adamw-seed0/full-lr=0.001/seed1000", "bart/given/0123abcd", "60m/adamw/seed0 copy"])
def test_every_folder_with_files_of_a_run_is_looked_at(run, capsys, name):
    folder = run.parents[2] / name
    folder.mkdir(parents=True)
    (folder / "record.json").write_text("{}")
    main(["verify"])
    (error,) = capsys.readouterr().err.splitlines()
    assert error.endswith(f"record.json has no digest of its own: remove {folder.relative_to(run.parents[5])}; what needs it makes it again")


def test_a_note_with_seeds_that_cannot_be_is_named(run, smoke, capsys):
    note = note_path(smoke.folder, "table8")
    note.parent.mkdir(parents=True, exist_ok=True)
    write_note(note, [], seeds=[0, 0], specs=[])
    assert main(["verify"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert f"{note}: " in error


def test_a_table_that_was_altered_is_named(run, smoke, capsys):
    outputs = smoke.outputs("table8")
    for path in outputs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1012.13")
    write_note(note_path(smoke.folder, "table8"), [], outputs, seeds=[0], specs=[])
    assert main(["verify"]) == 0
    copy = smoke.shown("table8")[0]
    copy.write_text("12.13")
    assert main(["verify"]) == 1
    assert f"{copy} is no copy of a scale's file: remove it, and ask for it again" in capsys.readouterr().err
    copy.write_text("1012.13")
    outputs[0].write_text("12.13")
    capsys.readouterr()
    assert main(["verify"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert f"{outputs[0]} is not as it was made: remove it, and make it again with `make results/table8.csv SCALE=smoke SEEDS='[0]'`" in error


def test_an_artifact_whose_runs_are_gone_is_named(run, capsys):
    suite = load_suite({"scale": "smoke", "seeds": [0, 2]})
    for path in suite.outputs("table2"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    write_note(note_path(suite.folder, "table2"), [], seeds=[0, 2], specs=suite.digests("table2"))
    assert main(["verify"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert "results/smoke/table2.csv was made from" in error and "make results/table2.csv SCALE=smoke SEEDS='[0,2]'" in error
