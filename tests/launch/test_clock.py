"""When a run saves and ends, by a clock that is turned by hand."""

import json
import math

import pytest

from poet.launch import clock
from poet.launch.clock import Clock, stopped


@pytest.fixture
def at(monkeypatch):
    """``at(seconds)`` turns the clock."""
    now = [0.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])

    def _at(seconds):
        now[0] = seconds

    return _at


@pytest.fixture
def of_job(monkeypatch):
    """``of_job(left)``: the clock of a run in a job with so many seconds left."""

    def _of_job(left, every=60.0, **options):
        monkeypatch.setattr(clock, "seconds_left", lambda: left)
        return Clock(every, **options)

    return _of_job


def test_saving_takes_at_most_a_twentieth_of_the_time(at, of_job):
    run = of_job(math.inf)
    at(59)
    assert not run.due(last=False)
    at(60)
    assert run.due(last=False)
    with run.saving():
        at(70)  # ten seconds: the next checkpoint is 200 seconds later
    at(269)
    assert not run.due(last=False) and run.due(last=True)
    at(270)
    assert run.due(last=False)


@pytest.mark.parametrize(("left", "ends"), [(3600.0, 3600 - 180), (100.0, 90.0)])
def test_a_run_ends_a_margin_before_its_job(at, of_job, left, ends):
    run = of_job(left)
    at(ends)
    assert run.ending() == 0
    at(ends + 1)
    assert run.ending() == 15


def test_a_slow_checkpoint_makes_the_margin_longer(at, of_job):
    run = of_job(3600.0)
    with run.saving():
        at(100)
    at(3600 - 299)
    assert run.ending() == 15


def test_a_process_that_does_not_watch_the_job_never_ends_by_it(at, of_job):
    run = of_job(1.0, watch_job=False)
    at(1e9)
    assert run.ending() == 0


def test_the_last_sentence():
    assert stopped("a", 7, 15) == "a: stopped by signal 15 after step 7: saved, the next call goes on"
    assert stopped("a", 7, 15, of_job=True) == "a: stopped at the end of the job's time after step 7: saved, the next call goes on"


@pytest.mark.parametrize(
    ("left", "seconds"),
    [("59", math.inf), ("0:59", 59), ("12:03", 723), ("1:00:00", 3600), ("2-03:00:01", 183601), ("UNLIMITED", math.inf), ("", math.inf)],
)
def test_slurm_s_durations(left, seconds):
    assert clock.duration(left) == seconds


def test_outside_of_a_job_there_is_no_end(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert clock.seconds_left() == math.inf


def test_slurm_is_asked_for_this_job(monkeypatch, tmp_path):
    squeue = tmp_path / "squeue"
    # Of an array all tasks are listed where the number is the array's own.
    squeue.write_text('#!/bin/sh\ntest "$*" = "-h -j 17 -o %A %L" && printf "18 2:00\\n17 1:40\\n"\n')
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert clock.seconds_left() == 100
    squeue.write_text('#!/bin/sh\nprintf "17 \\n"\n')
    assert clock.seconds_left() == math.inf
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert clock.seconds_left() == math.inf


def test_a_run_saves_and_ends_before_its_job_does(make_spec, train_run, tmp_path, monkeypatch, capsys):
    spec = make_spec(steps=400, evaluate_every=1000)
    monkeypatch.setattr(clock, "seconds_left", lambda: 1.0)  # SHARE of which is kept for saving
    with pytest.raises(SystemExit) as caught:
        train_run(spec, checkpoint_seconds=1000)
    assert caught.value.code == 143
    assert "stopped at the end of the job's time" in capsys.readouterr().err
    status = json.loads((tmp_path / "run-checkpoints" / "status.json").read_text())
    assert status["state"] == "stopped" and 0 < status["checkpoint_step"] < 400
