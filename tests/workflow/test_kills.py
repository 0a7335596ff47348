"""The command that kills pipelines: it counts as a kill only what a signal ended."""

import signal
import subprocess
import time

import psutil
from tests.workflow.kills import kill


def test_a_pipeline_that_ended_before_the_signal_was_not_killed():
    process = subprocess.Popen(["true"])
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert kill(process, alone=False) == 0
    assert process.returncode == 0


def test_one_at_work_is_killed_with_what_it_started():
    process = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"])
    while len(children := psutil.Process(process.pid).children()) < 2:
        time.sleep(0.01)
    assert kill(process, alone=False) == 3
    assert process.returncode == -signal.SIGKILL
    assert not psutil.wait_procs(children, timeout=10)[1]
