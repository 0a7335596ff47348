"""Ctrl-C and kills of a real pipeline: children end too, and the next call goes on."""

import json
import os
import signal
import subprocess
import time

import psutil

RUN = "results/runs/mini/60m/poet-fs-1_2/seed0/record.json"


def start(project):
    """Start the pipeline in a process group of its own, as a terminal would, and wait until it trains."""
    process = subprocess.Popen(
        project.command(RUN, "--config", "scale=mini"),
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where a shell has started the tests in the background
    )
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        children = [c for c in psutil.Process(process.pid).children(recursive=True) if training(c)]
        if children and children[0].cpu_times().user > 9:  # past its imports, some way into its steps
            return process, children
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.2)
    raise AssertionError("the run never started")


def training(process):
    try:
        return "train.py" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def test_ctrl_c_keeps_progress_for_the_next_call(project):
    project.edit("config/scales/mini.yaml", "steps: 480", "steps: 1200")
    process, children = start(project)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
    folder = project.folder / "results" / "checkpoints" / "mini" / "60m" / "poet-fs-1_2" / "seed0"
    assert list(folder.glob("*/*.pt")), output[-3000:]
    again = project.snakemake(RUN, "--config", "scale=mini")
    assert again.returncode == 0, again.stderr[-3000:]
    log = (project.folder / "results" / "logs" / "runs" / "mini" / "60m" / "poet-fs-1_2" / "seed0.log").read_text()
    assert "goes on from step" in log
    record = json.loads((project.folder / RUN).read_text())
    assert record["steps"] == 1200
    assert record["status"] == "completed"
    assert not folder.exists()
