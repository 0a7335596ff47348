"""Kills at every moment, a disk that is full, a rerun: the result is that of a run that nobody disturbed."""

import functools
import io
import json
import os
import random
import resource
import signal

import pytest

from poet.launch import checkpoints, clock, loop
from poet.launch.records import read_history
from tests.launch.forks import fork, wait

STEPS = 40
#: Where a kill can hit: within a step, while a checkpoint is written, between its last byte and its name, between the new
#: one's name and the removal of the old one, and while the record is written.
MOMENTS = ("step", "writing", "renaming", "removing", "record")


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(moment, step):
    """In this process: die at the moment, in step ``step`` or the first one after it."""
    train_step, reached = loop.Run.train_step, []

    def stepping(run):
        if run.step >= step:
            reached.append(run.step)
            if moment == "step":
                die()
        return train_step(run)

    loop.Run.train_step = stepping
    hit = {
        "writing": (checkpoints.torch, "save"),
        "renaming": (checkpoints.os, "replace"),
        "removing": (checkpoints.Path, "unlink"),
        "record": (loop, "write_record"),
    }.get(moment)
    if hit is not None:
        original = getattr(*hit)

        def hitting(*arguments, **options):
            if reached:
                if moment == "writing":  # half of it is on the disk
                    state, file = arguments
                    original(state, whole := io.BytesIO())
                    file.write(whole.getvalue()[: whole.tell() // 2])
                    file.flush()
                die()
            return original(*arguments, **options)

        setattr(*hit, hitting)


@pytest.fixture(scope="module")
def runs(make_spec, data):
    """``runs(folder)``: ``train(checkpoint_seconds=...)`` of one spec into that folder, its checkpoints beside it."""
    parameters = {"merge_every": 5, "poet_lr": 1e-2, "variant": "fs", "budget": 0.5}
    spec = make_spec(
        method="poet", parameters=parameters, steps=STEPS, accumulation=2, evaluate_every=7, probes={"orthogonality": (0, 9, 31)}
    )

    def _runs(folder):
        return functools.partial(loop.train, spec, data=data, folder=folder, checkpoints=folder.with_name(f"{folder.name}-checkpoints"))

    return _runs


def outcome(folder):
    """What has to be the same bit for bit."""
    record = json.loads((folder / "record.json").read_text())
    history = [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in read_history((folder / "history.csv").read_text())]
    kept = ("status", "validation_perplexity", "steps", "tokens", "held", "weights_sha256", "probes_sha256")
    return {key: record[key] for key in kept}, history


@pytest.fixture(scope="module")
def whole(runs, tmp_path_factory):
    """The outcome of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed") / "whole"
    runs(folder)()
    return outcome(folder)


def test_kills_at_every_moment_leave_the_same_bits(whole, runs, tmp_path, monkeypatch):
    chance, killed = random.Random(6), []
    moments = [*chance.sample(MOMENTS[:-1] * 4, 16), MOMENTS[-1]]
    monkeypatch.setattr(clock, "SAVING", float("inf"))  # after every step
    train = runs(tmp_path / "killed")
    for number, moment in enumerate(moments):
        step = STEPS * number // len(moments) + chance.randrange(3)

        def attempt(moment=moment, step=step):
            kill_at(moment, step)
            train(checkpoint_seconds=0)

        killed += wait([fork(attempt)])
    assert killed == [-signal.SIGKILL] * len(moments)
    assert not (tmp_path / "killed" / "record.json").exists()
    assert wait([fork(train)]) == [0]
    again = outcome(tmp_path / "killed")
    assert again == whole
    assert [row["step"] for row in again[1]] == list(range(1, STEPS + 1))
    assert not (tmp_path / "killed-checkpoints").exists()


def test_a_disk_that_is_full_is_one_sentence_and_the_next_call_goes_on(whole, runs, tmp_path, capfd):
    """The system itself refuses to write past a size: the file ends where the disk would."""
    train = runs(tmp_path / "full")

    def attempt():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        stepping = loop.Run.train_step

        def patched(run):
            if run.step == 20:
                resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
            return stepping(run)

        loop.Run.train_step = patched
        train(checkpoint_seconds=0)

    assert wait([fork(attempt)]) == [2]
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and "cannot write a checkpoint" in said[0] and "the last good checkpoint is kept" in said[0]
    status = json.loads((tmp_path / "full-checkpoints" / "status.json").read_text())
    assert status["state"] == "failed" and status["error"] in said[0] and 0 < status["checkpoint_step"] <= 20
    assert wait([fork(train)]) == [0]
    assert f"goes on from step {status['checkpoint_step']}" in capfd.readouterr().err
    assert outcome(tmp_path / "full") == whole


def test_a_clock_that_jumps_changes_nothing(whole, runs, tmp_path, monkeypatch):
    """Steps, checkpoints and throughput go by a clock that only counts; the other one is for people."""
    import time

    jumps, clock = [0.0], time.time
    stepping = loop.Run.train_step

    def patched(run):
        if run.step in (10, 20):
            jumps.append(1e9 if run.step == 10 else -1e9)
        return stepping(run)

    monkeypatch.setattr(loop.Run, "train_step", patched)
    monkeypatch.setattr(time, "time", lambda: clock() + jumps[-1])
    runs(tmp_path / "jumped")(checkpoint_seconds=0)
    assert jumps == [0.0, 1e9, -1e9] and outcome(tmp_path / "jumped") == whole
    record = json.loads((tmp_path / "jumped" / "record.json").read_text())
    assert 0 < record["cost"]["train_seconds"] < 60
