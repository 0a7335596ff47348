"""What a run says of itself while it is trained, and when it ends badly."""

import json
import time

import pytest

from poet.system.files import DiskError
from poet.launch import status as module
from poet.training.errors import RunError
from poet.launch.status import Status, read_status


@pytest.fixture
def status(tmp_path):
    return Status(tmp_path, "mini/60m/adamw/seed0", "digest", 100, 2)


def test_it_says_where_it_is(status, tmp_path, monkeypatch):
    assert read_status(tmp_path) is None
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    status = Status(tmp_path, "mini/60m/adamw/seed0", "digest", 100, 2)
    before = time.time()
    status.update(step=3, tokens_per_second=5.5)
    found = read_status(tmp_path)
    assert {key: found[key] for key in ("state", "name", "step", "steps", "tokens_per_second", "job", "devices", "error")} == {
        "state": "running", "name": "mini/60m/adamw/seed0", "step": 3, "steps": 100, "tokens_per_second": 5.5, "job": "17", "devices": 2,
        "error": None,
    }
    assert before <= found["updated"] <= time.time()


def test_it_writes_now_and_then_and_when_it_is_told_to(status, tmp_path):
    for step in range(3):
        status.update(step=step)
    assert read_status(tmp_path)["step"] == 0
    status.update(step=3, now=True)
    assert read_status(tmp_path)["step"] == 3


@pytest.mark.parametrize(
    ("error", "state", "sentence"),
    [
        (RunError("a sentence"), "failed", "a sentence"),
        (ValueError("line one\nline two"), "failed", "ValueError: line one"),
        (SystemExit(143), "stopped", None),
        (KeyboardInterrupt(), "stopped", None),
    ],
)
def test_how_it_ended(status, tmp_path, error, state, sentence):
    with pytest.raises(type(error)), status:
        status.update(step=9, now=True)
        raise error
    found = read_status(tmp_path)
    assert (found["state"], found["error"], found["step"]) == (state, sentence, 9)


def test_what_ended_a_run_is_heard_even_if_nothing_can_be_written(status, monkeypatch):
    def full(*_):
        raise DiskError("the disk is full")

    monkeypatch.setattr(module, "write_text", full)
    with pytest.raises(RunError, match="a sentence"), status:
        raise RunError("a sentence")


def test_a_file_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "status.json").write_text(json.dumps([1]))
    with pytest.raises(ValueError, match="holds no JSON object"):
        read_status(tmp_path)
