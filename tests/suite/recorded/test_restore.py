"""A recorded run takes the place of training only where spec, code and data are as they were, and the log says why not."""

import dataclasses
import json
import platform

import pytest

from poet.launch.records import write_record
from poet.training.errors import RunError
from suite.recorded import archive
from suite.recorded.restore import changed, restored, unpack
from suite.recorded.run import RecordedError, checked, sha256
from tests.suite.recorded.conftest import ROWS, WHERE, finetuning_record, write_meta


@pytest.fixture
def asked(tmp_path, recorded_run, specs, capsys):
    """``asked(spec=..., device=..., rows=..., **changes)``: whether a run whose record has ``changes`` is restored, and the log."""

    def _asked(spec=None, device="cpu", rows=ROWS, origin="", keep_weights=False, first_seed=True, **changes):
        recorded = dataclasses.replace(specs["130m/adamw"], keep_weights=keep_weights)
        archive.write(tmp_path / "runs.parquet", [recorded_run(recorded, origin, **changes)])
        write_meta(tmp_path / "data", rows)
        folder = tmp_path / "runs" / "it"
        done = restored(spec or recorded, folder, tmp_path / "data", device, tmp_path / "runs.parquet", first_seed=first_seed)
        assert done == (folder / "record.json").exists()
        return done, capsys.readouterr().err

    return _asked


def test_a_run_of_today_s_spec_code_and_data_is_restored(asked):
    done, log = asked()
    assert done and "smoke/130m/adamw/seed0: restored from runs.parquet: recorded on A CPU by commit aaaa" in log


def test_a_pretrained_bart_has_no_base_to_differ(smoke, tmp_path):
    (spec,) = (spec for spec in smoke.finetunings.values() if not spec.base)
    write_meta(tmp_path, rows="e" * 64)
    assert changed(spec, finetuning_record(spec) | {"base_weights_sha256": None}, "cpu", tmp_path, None) == []


def test_a_foreign_one_is_called_foreign(asked):
    done, log = asked(origin="lab-b")
    assert done and "foreign, from lab-b" in log


@pytest.mark.parametrize(
    ("digest", "why"), [("training_digest", "training code"), ("data_sha256", "prepared data"), ("validation_sha256", "prepared data")]
)
def test_a_stale_run_is_not_restored_and_the_log_says_why(asked, digest, why):
    done, log = asked(**{digest: "0" * 64})
    assert not done and log == f"smoke/130m/adamw/seed0: trained, and not taken from runs.parquet: not as recorded: {why}\n"


def test_another_python_that_reads_the_code_otherwise_is_named(asked, monkeypatch):
    monkeypatch.setitem(WHERE["versions"], "python", "3.10.2")
    _, log = asked(training_digest="0" * 64)
    assert f"not as recorded: training code or Python (3.10.2 then, {platform.python_version()} now)\n" in log


def test_all_that_differs_is_named(asked):
    done, log = asked(training_digest="0" * 64, rows="s" * 64)
    assert not done and "not as recorded: training code, prepared data\n" in log


def test_another_spec_device_or_weights_are_trained(asked, specs):
    spec = specs["130m/adamw"]
    assert "not as recorded: spec\n" in asked(spec=dataclasses.replace(spec, steps=7))[1]
    assert "not as recorded: device (cpu then, cuda now)\n" in asked(device="cuda")[1]
    assert "archives have none\n" in asked(keep_weights=True)[1]
    assert "it is not among the recorded runs\n" in asked(spec=specs["60m/poet-fs-1_2"])[1]


def test_weights_that_nobody_reads_are_not_trained_for(asked):
    assert asked(keep_weights=True, first_seed=False)[0]


@pytest.fixture(scope="module")
def finetuning(smoke):
    """A finetuning run of the smoke scale that starts from a pretrained one."""
    return next(spec for spec in smoke.finetunings.values() if spec.base)


@pytest.fixture
def finetuned(tmp_path, finetuning, specs, capsys):
    """As ``asked``, of a finetuning run; ``examples`` and ``weights`` are today's."""

    def _asked(spec=finetuning, device="cpu", examples="e" * 64, weights="w" * 64, base="base.json", **changes):
        write_record(tmp_path / "record.json", finetuning_record(finetuning) | changes)
        archive.write(tmp_path / "runs.parquet", [checked({"record.json": (tmp_path / "record.json").read_bytes()})])
        assert list(archive.read(tmp_path / "runs.parquet")) == [finetuning.name]
        write_meta(tmp_path, examples)
        write_record(tmp_path / "base.json", {"weights_sha256": weights})
        folder = tmp_path / "runs" / "it"
        done = restored(spec, folder, tmp_path, device, tmp_path / "runs.parquet", base=base and tmp_path / base)
        assert done == (folder / "record.json").exists()
        return done, capsys.readouterr().err

    return _asked


def test_a_finetuning_run_is_restored_if_its_examples_and_its_base_are_the_recorded_ones(finetuned, finetuning):
    assert finetuned()[0]


def test_a_stale_finetuning_run_is_trained_and_the_log_says_why(finetuned, finetuning):
    for given, why in (
        ({"examples": "0"}, "examples"), ({"weights": "0"}, "pretrained weights"), ({"training_digest": "0"}, "training code"),
        ({"device": "cuda"}, "device (cpu then, cuda now)"), ({"spec": dataclasses.replace(finetuning, epochs=7)}, "spec"),
    ):  # fmt: skip
        done, log = finetuned(**given)
        assert not done and log.endswith(f"not as recorded: {why}\n")
    assert "it is not among the recorded runs\n" in finetuned(spec=dataclasses.replace(finetuning, seed=7))[1]


def test_what_others_start_from_is_trained(finetuned):
    assert finetuned(base=None)[1].endswith("its weights are asked for, and archives have none\n")


def test_an_edited_finetuning_record_is_refused(tmp_path, finetuned):
    finetuned()
    record = json.loads((tmp_path / "record.json").read_text())
    with pytest.raises(RecordedError, match="was edited"):
        checked({"record.json": json.dumps({**record, "metric": 0.9}).encode()})


def test_an_edited_record_of_the_pretrained_run_is_refused(tmp_path, finetuning):
    write_meta(tmp_path, "e" * 64)
    write_record(tmp_path / "base.json", {"weights_sha256": "0" * 64})
    (tmp_path / "base.json").write_text((tmp_path / "base.json").read_text().replace("0" * 64, "w" * 64))
    with pytest.raises(RunError, match="base.json cannot be read as a record, or was edited: remove it"):
        changed(finetuning, finetuning_record(finetuning), "cpu", tmp_path, tmp_path / "base.json")


def test_summaries_travel_with_their_record(tmp_path, finetuned, finetuning):
    finetuned()
    text = b'["a summary", "its reference"]\n'
    write_record(tmp_path / "record.json", json.loads((tmp_path / "record.json").read_text()) | {"summaries_sha256": sha256(text)})
    files = {"record.json": (tmp_path / "record.json").read_bytes(), "summaries.jsonl": text}
    archive.write(tmp_path / "runs.parquet", [checked(files)])
    unpack(archive.read(tmp_path / "runs.parquet")[finetuning.name], tmp_path / "again")
    assert (tmp_path / "again" / "summaries.jsonl").read_bytes() == text
    with pytest.raises(RecordedError, match="record and summaries of run .* do not belong together"):
        checked(files | {"summaries.jsonl": b""})
