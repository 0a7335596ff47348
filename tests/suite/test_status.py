"""How far runs are, from their files alone: whole, broken, old, of another clock."""

import json
import math
import os
import socket
import subprocess

import pytest

from poet.launch.records import write_record
from poet.launch.status import Status
from poet.system.files import write_text
from suite.collection import load_suite
from suite.__main__ import main
from suite.status import STATES, duration, page, progress, status

NOW = 1_000_000.0
MINUTE, HOUR = 60.0, 3600.0


def whichever(spec, record):
    """Every finished run counts, whichever code trained it."""
    return True


@pytest.fixture
def spec(make_spec):
    """100 steps of 64 tokens."""
    return make_spec(steps=100)


@pytest.fixture
def saying(tmp_path, spec):
    """``saying(age, **changes)``: how far the run is by a ``status.json`` that is so many seconds old."""

    def _saying(age=5.0, **changes):
        values = {
            "state": "running",
            "name": spec.name,
            "step": 40,
            "steps": 100,
            "tokens_per_second": 32.0,
            "updated": NOW - age,
            "host": "node7",
            "pid": 123,
            "job": "4711",
            "devices": 8,
            "error": None,
            "checkpoint_step": 30,
            "spec_digest": spec.digest,
            **changes,
        }
        write_text(tmp_path / "checkpoints" / spec.name / "status.json", json.dumps(values))
        return progress(tmp_path, spec, NOW, whichever)

    return _saying


def recorded(tmp_path, spec, **changes):
    record = {"spec_digest": spec.digest, "status": "completed", **changes}
    write_record(tmp_path / "runs" / spec.name / "record.json", record)
    return progress(tmp_path, spec, NOW, whichever)


def test_nothing_is_there(tmp_path, spec):
    found = progress(tmp_path, spec, NOW, whichever)
    assert (found.state, found.notes) == ("not started", ())


def test_a_record_is_the_last_word(tmp_path, spec, saying):
    assert saying().state == "running"
    assert recorded(tmp_path, spec).state == "done"
    assert recorded(tmp_path, spec, status="diverged", validation_perplexity=math.nan).state == "diverged"


def test_a_record_of_another_spec_is_not_done(tmp_path, spec, saying):
    assert recorded(tmp_path, spec, spec_digest="0" * 64).state == "outdated"
    text = page("test", [progress(tmp_path, spec, NOW, whichever)])
    assert "0 done" not in text and "1 outdated" in text and f"trained again: {spec.name}" in text
    assert saying().state == "running", "it is being trained again"


@pytest.mark.parametrize(("name", "state"), [("smoke", "outdated"), ("night", "done")])
def test_a_run_of_other_code_is_outdated_where_it_will_be_trained_again(tmp_path, name, state):
    suite = load_suite({"scale": name, "seeds": [0]})
    spec = suite.scale.run("60m", "adamw", 0)
    recorded(tmp_path, spec, training_digest="of other code")
    assert progress(tmp_path, spec, NOW, suite.is_current()).state == state


def test_what_another_spec_of_the_run_said_does_not_count(saying):
    found = saying(spec_digest="0" * 64, state="failed")
    assert (found.state, found.notes) == ("not started", ())


def test_a_running_run(saying, spec):
    found = saying()
    assert (found.state, found.age, found.seconds_left) == ("running", 5.0, 60 * 64 / 32)
    text = page("test", [found])
    for words in ("40 of 100", "32", "2 minutes", "job 4711", "5 seconds ago", "step 30", f"ends in 2 minutes: {spec.name}"):
        assert words in text
    assert "node7, process 123" in page("test", [saying(job=None)])


def test_a_run_whose_process_is_gone_from_this_machine_has_stopped(saying):
    gone = subprocess.Popen(["true"])
    gone.wait()
    here = socket.gethostname()
    assert (saying(host=here, pid=gone.pid).state, saying(host=here, pid=os.getpid()).state) == ("stopped", "running")


def test_a_run_that_has_just_begun_has_no_pace(saying):
    for speed in (None, 0):
        found = saying(step=0, tokens_per_second=speed)
        assert found.state == "running" and math.isnan(found.seconds_left)
        assert "0 of 100" in page("test", [found]) and "nan" not in page("test", [found])


def test_silence_is_measured_by_the_runs_own_pace(saying):
    assert saying(age=9 * MINUTE).state == "running"
    found = saying(age=2 * HOUR)
    assert found.state == "silent" and "no word for 2 hours" in page("test", [found])
    slow = {"tokens_per_second": 64 / (10 * MINUTE)}  # ten minutes a step
    assert saying(age=2 * HOUR, **slow).state == "running"
    assert saying(age=4 * HOUR, **slow).state == "silent"
    assert saying(age=4 * HOUR, state="stopped").state == "stopped", "it said that it would be silent"


def test_a_failed_run_has_its_error(saying, spec):
    text = page("test", [saying(state="failed", error="the disk is full: free some space", age=3 * HOUR)])
    assert f"{spec.name} failed 3 hours ago after step 40: the disk is full: free some space" in text
    assert "1 failed" in text


def test_a_clock_that_is_ahead(saying):
    far = saying(age=-2 * HOUR)
    assert (far.age, far.state) == (0.0, "running")
    assert "-" not in page("test", [far]).replace("tokens/s", "")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"state": "running"}', "\x00\xff"])
def test_files_that_cannot_be_read_are_named_in_a_sentence(tmp_path, spec, content):
    status = tmp_path / "checkpoints" / spec.name / "status.json"
    record = tmp_path / "runs" / spec.name / "record.json"
    for path in (status, record):
        path.parent.mkdir(parents=True)
        path.write_bytes(content.encode("latin-1"))
    found = progress(tmp_path, spec, NOW, whichever)
    assert found.state == "not started"
    assert [str(path) in note for path, note in zip((record, status), found.notes, strict=True)] == [True, True]


def test_what_training_writes_is_what_is_read(tmp_path, spec):
    status = Status(tmp_path / "checkpoints" / spec.name, spec.name, spec.digest, spec.steps, 2)
    status.update(now=True, step=7, tokens_per_second=64.0, checkpoint_step=5)
    found = progress(tmp_path, spec, status.values["updated"], whichever)
    assert found.state == "running" and found.status["step"] == 7 and found.status["devices"] == 2
    with pytest.raises(ValueError), status:
        raise ValueError("two lines\nof error")
    assert progress(tmp_path, spec, NOW, whichever).status["error"] == "ValueError: two lines"


def test_totals_are_in_one_order_and_leave_nothing_out(tmp_path, spec, saying):
    found = [recorded(tmp_path, spec), recorded(tmp_path, spec, status="diverged"), recorded(tmp_path, spec, spec_digest="x")]
    (tmp_path / "runs" / spec.name / "record.json").unlink()
    found += [saying(), saying(age=HOUR), saying(state="stopped"), saying(state="failed", error="e")]
    (tmp_path / "checkpoints" / spec.name / "status.json").unlink()
    found += [progress(tmp_path, spec, NOW, whichever)]
    first = page("test", found).splitlines()[0]
    assert first == "Scale test: 8 runs: " + ", ".join(f"1 {state}" for state in STATES) + "."


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 seconds"), (59.9, "59 seconds"), (60, "1 minute"), (7380, "2 hours and 3 minutes"), (90061, "1 day and 1 hour"), (math.nan, "")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_what_is_neither_here_nor_recorded_is_named(smoke, tmp_path, monkeypatch):
    specs = {spec.name: spec for spec in smoke.artifacts["table6"].specs(smoke.scale)}
    missing = [name for name, spec in specs.items() if spec.model == "60m"][:2]
    recorded = {name: (spec.digest, "") for name, spec in smoke.specs.items() if name not in missing}
    monkeypatch.setattr("suite.status.digests", lambda archive: recorded)
    text = status(smoke, tmp_path)
    assert "Neither here nor recorded: 2 runs." in text and f"- table6: 2 of {len(specs)} of 60m" in text
    recorded |= {name: (specs[name].digest, "") for name in missing}
    assert "Neither here nor recorded" not in status(smoke, tmp_path)
    recorded[missing[0]] = ("another spec", "")
    assert "Neither here nor recorded: 1 runs." in status(smoke, tmp_path)
    recorded.clear()
    assert "Neither here nor recorded" not in status(smoke, tmp_path), "a scale without recorded runs names none"


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("suite.__main__.RESULTS", tmp_path)
    assert main(["status", "--scale", "smoke"]) == 0
    assert "not started" in capsys.readouterr().out and not list(tmp_path.iterdir()), "nothing is written"
