"""Ctrl-C and kills of a real pipeline: children end too, and the next call goes on."""

import contextlib
import json
import os
import signal
import subprocess
import time

import psutil

NAME, STEPS = "smoke/60m/poet-fs-1_2/seed0", 400
CALL = (f"results/runs/{NAME}/record.json", "--config", "scale=smoke")


def start(project, status):
    """Start the pipeline in a process group of its own, as a terminal would, and wait until it trains."""
    process = subprocess.Popen(
        project.command(*CALL),
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where a shell has started the tests in the background
    )
    deadline = time.monotonic() + 240
    with contextlib.ExitStack() as failing:
        failing.callback(os.killpg, process.pid, signal.SIGKILL)  # or it goes on training beside the tests that follow
        while not (status.exists() and json.loads(status.read_text())["state"] == "running"):
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < deadline, "the run never started"
            time.sleep(0.05)
        children = [child for child in psutil.Process(process.pid).children(recursive=True) if training(child)]
        assert children
        failing.pop_all()
    return process, children


def training(process):
    try:
        return "train.py" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def test_ctrl_c_keeps_progress_for_the_next_call(project):
    project.edit("config/scales/smoke.yaml", "steps: 6,", f"steps: {STEPS},")  # of 60m: seconds in which to be stopped
    project.edit("config/scales/smoke.yaml", ", runs_per_job: 15", "")
    folder = project.folder / "results" / "checkpoints" / NAME
    process, children = start(project, folder / "status.json")
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=240)
    assert process.returncode != 0
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive
    assert list(folder.glob("*/*.pt")), output[-3000:]
    again = project.snakemake(*CALL)
    assert again.returncode == 0, again.stderr[-3000:]
    log = (project.folder / "results" / "logs" / "runs" / f"{NAME}.log").read_text()
    assert "goes on from step" in log
    record = json.loads((project.folder / "results" / "runs" / NAME / "record.json").read_text())
    assert record["steps"] == STEPS
    assert record["status"] == "completed"
    assert not folder.exists()
