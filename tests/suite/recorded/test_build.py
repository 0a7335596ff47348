"""Which seeds of the recorded runs are built from, and what is refused."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from suite.recorded import archive, build as builder
from suite.recorded.run import RecordedError


@pytest.fixture
def recorded(recorded_run, specs, tmp_path, monkeypatch):
    """Two runs of seed 0 and one of seed 1, and what would be built with which seeds."""
    runs = [recorded_run(spec) for spec in (specs["60m/adamw"], specs["130m/adamw"], replace(specs["60m/adamw"], seed=1))]
    archive.write(tmp_path / "runs.parquet", runs)
    monkeypatch.setattr(builder, "archive_path", lambda scale: tmp_path / "runs.parquet")
    monkeypatch.setattr(builder, "RESULTS", tmp_path)
    asked = []
    monkeypatch.setattr(builder, "_in_order", lambda suite, names, left_out, results: asked.append(list(suite.scale.seeds)) or [])
    return asked


def test_a_seed_that_is_recorded_in_part_is_left_out_with_a_word(recorded):
    lines, _ = builder.build("smoke")
    assert recorded == [[0]] and lines[0] == "seed 1 is left out: 1 runs of it are recorded, and 2 of seed 0"
    lines, _ = builder.build("smoke", [0, 1])
    assert recorded == [[0], [0, 1]] and not any("left out" in line for line in lines)


def test_a_seed_that_nobody_recorded_is_refused_and_what_was_made_stays(recorded, tmp_path):
    (table := tmp_path / "recorded" / "smoke" / "table2.csv").parent.mkdir(parents=True)
    table.write_text("of before")
    with pytest.raises(RecordedError, match="no run of seed 7 is recorded at scale smoke: ask for some of 0, 1"):
        builder.build("smoke", [0, 7])
    assert recorded == [] and table.read_text() == "of before"


ENDLESS = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from suite.recorded.build import _ended_with_its_processes
if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool, _ended_with_its_processes(pool):
        print(pool.submit(os.getpid).result(), flush=True)
        for _ in range(1000):
            pool.submit(time.sleep, 60)
        time.sleep(600)
"""


def test_a_build_that_is_told_to_end_leaves_no_process_behind(repository):
    running = subprocess.Popen([sys.executable, "-c", ENDLESS], cwd=repository, stdout=subprocess.PIPE, text=True)
    worker = int(running.stdout.readline())
    os.kill(worker, 0)  # it is there
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
