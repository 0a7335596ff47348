"""The command that kills pipelines: it counts as a kill only what a signal ended."""

import signal
import subprocess
import time

import psutil
from tests.workflow import kills


def test_a_pipeline_that_ended_before_the_signal_was_not_killed():
    process = subprocess.Popen(["true"])
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert kills.kill(process, alone=False) == 0
    assert process.returncode == 0


def test_one_at_work_is_killed_with_what_it_started():
    process = subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"])
    while len(children := psutil.Process(process.pid).children()) < 2:
        time.sleep(0.01)
    assert kills.kill(process, alone=False) == 3
    assert process.returncode == -signal.SIGKILL
    assert not psutil.wait_procs(children, timeout=60)[1]


class Sleeping:
    """In place of a project: a pipeline that only takes its time."""

    def __init__(self, folder, seconds):
        self.folder, self.seconds = folder, seconds

    def command(self, *arguments):
        return ["sleep", str(self.seconds)]


def test_a_last_call_that_does_not_end_needs_a_human(tmp_path, monkeypatch):
    monkeypatch.setattr(kills, "LAST_CALL", 0.5)
    (killed, good), (last, ended) = kills.kills(Sleeping(tmp_path, 60), number=1, longest=0.5, seed=0)
    assert killed.startswith("kill 1 after") and good
    assert "had not ended" in last and not ended


def test_a_call_that_ends_without_its_targets_needs_a_human(tmp_path):
    ((said, good),) = kills.kills(Sleeping(tmp_path, 0), number=1, longest=60.0, seed=0)
    assert said.startswith("ended by itself") and "exit code 0" in said and "missing" in said and not good
