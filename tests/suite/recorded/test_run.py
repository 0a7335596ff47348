"""A run is accepted as a whole or not at all, and comes back byte for byte."""

import json

import pytest

from poet.launch.records import record_digest
from suite.recorded.archive import read, write
from suite.recorded.restore import unpack
from suite.recorded.run import RecordedError, checked


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_trained_run_comes_back_byte_for_byte(make_spec, train_run, tmp_path):
    spec = make_spec(method="poet", parameters={"block_size": 8, "merge_every": 4}, probes={"orthogonality": (0, 6, 12)})
    _, folder = train_run(spec)
    before = contents(folder)
    assert set(before) == {"record.json", "history.csv", "probes.npz"}
    write(tmp_path / "runs.parquet", [checked(before)])
    (run,) = read(tmp_path / "runs.parquet").values()
    unpack(run, tmp_path / "again")
    again = contents(tmp_path / "again")
    assert again.pop("origin.json") and again == before


def test_unpacking_leaves_nothing_of_another_run(recorded_run, specs, tmp_path):
    (tmp_path / "probes.npz").write_bytes(b"of another run")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model.safetensors").write_bytes(b"of an earlier training")
    unpack(recorded_run(specs["60m/adamw"]), tmp_path)
    assert not (tmp_path / "weights").exists()
    assert sorted(contents(tmp_path)) == ["history.csv", "origin.json", "record.json"]


def edited(files):
    files["record.json"] = files["record.json"].replace(b"completed", b"diverged", 1)


def other_history(files):
    files["history.csv"] += b"2,,4.0,,,,,\n"


def no_history(files):
    del files["history.csv"]


def surplus_probes(files):
    files["probes.npz"] = b"measured elsewhere"


def other_spec(files):
    record = json.loads(files["record.json"])
    record["spec"]["steps"] += 1
    record["record_sha256"] = record_digest(record)
    files["record.json"] = json.dumps(record).encode()


def of_old_code(files):
    record = json.loads(files["record.json"])
    del record["training_digest"]
    files["record.json"] = json.dumps(record).encode()


def cut_short(files):
    files["record.json"] = files["record.json"][:100]


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (edited, "the record of run smoke/60m/adamw/seed0 was edited"),
        (other_history, "record and history of run smoke/60m/adamw/seed0 do not belong together"),
        (no_history, "record and history of run smoke/60m/adamw/seed0 do not belong together"),
        (surplus_probes, "record and probes of run smoke/60m/adamw/seed0 do not belong together"),
        (other_spec, "record and spec of run smoke/60m/adamw/seed0 do not belong together"),
        (of_old_code, "the record of run smoke/60m/adamw/seed0 lacks 'training_digest'"),
        (cut_short, "a run's record cannot be read"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_files_that_do_not_belong_together_are_refused(recorded_run, specs, harm, words):
    files = dict(recorded_run(specs["60m/adamw"]).files)
    harm(files)
    with pytest.raises(RecordedError) as caught:
        checked(files)
    assert str(caught.value).startswith(words) and "\n" not in str(caught.value)
