"""When a run saves and ends, by a clock that is turned by hand."""

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
