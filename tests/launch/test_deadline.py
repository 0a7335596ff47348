"""A run ends in time before its job does."""

import json
import math

import pytest

from poet.launch import clock, deadline


@pytest.mark.parametrize(
    ("left", "seconds"),
    [("59", math.inf), ("0:59", 59), ("12:03", 723), ("1:00:00", 3600), ("2-03:00:01", 183601), ("UNLIMITED", math.inf), ("", math.inf)],
)
def test_slurm_s_durations(left, seconds):
    assert deadline.parse(left) == seconds


def test_outside_of_a_job_there_is_no_end(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert deadline.seconds_left() == math.inf


def test_slurm_is_asked_for_this_job(monkeypatch, tmp_path):
    squeue = tmp_path / "squeue"
    squeue.write_text('#!/bin/sh\ntest "$*" = "-h -j 17 -o %L" && echo 1:40\n')
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert deadline.seconds_left() == 100
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert deadline.seconds_left() == math.inf


def test_a_run_saves_and_ends_before_its_job_does(make_spec, train_run, tmp_path, monkeypatch, capsys):
    spec = make_spec(steps=400, evaluate_every=1000)
    monkeypatch.setattr(clock, "seconds_left", lambda: 1.0)  # SHARE of which is kept for saving
    with pytest.raises(SystemExit) as caught:
        train_run(spec, checkpoint_seconds=1000)
    assert caught.value.code == 143
    assert "stopped at the end of the job's time" in capsys.readouterr().err
    status = json.loads((tmp_path / "run-checkpoints" / "status.json").read_text())
    assert status["state"] == "stopped" and 0 < status["checkpoint_step"] < 400
