"""A whole pipeline is killed, with its jobs, and the next call goes on; what failed is said last; what is gone is noticed."""

import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import psutil
import pytest

from poet.system.errors import UserError
from suite.pipeline import ERRORS
from tests.modules import load

#: Builds when it may; until then it is at work.
ARTIFACT = """
import time
from pathlib import Path

from poet.system.errors import UserError
from suite.artifact import Artifact


def build(context):
    (context.results / "began").touch()
    while not Path("go").exists():
        time.sleep(0.1)
    if Path("fail").exists():
        raise UserError(Path("fail").read_text())
    (context.results / "table98.csv").write_text("a\\n1\\n")


ARTIFACT = Artifact(label="Table 98", caption="Mine.", outputs=("table98.csv",), runs=lambda scale: [], build=build)
"""
CALL = ("results/table98.csv", "--config", "scale=smoke")


@pytest.fixture
def small(project):
    """A project with one artifact, which needs no runs."""
    project.keep()
    (project.folder / "analyses" / "tables" / "table98.py").write_text(ARTIFACT)
    return project


def test_the_next_call_goes_on_after_a_kill_and_says_last_what_failed(small):
    process = subprocess.Popen(small.command(*CALL), cwd=small.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = []
    try:
        deadline = time.monotonic() + 120
        while not (small.folder / "results" / "smoke" / "began").exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.1)
        assert list((small.folder / ".snakemake" / "locks").iterdir())
        children = psutil.Process(process.pid).children(recursive=True)
    finally:
        for pid in [process.pid, *(child.pid for child in children)]:
            os.kill(pid, signal.SIGKILL)
        process.wait()
    assert list((small.folder / ".snakemake" / "locks").iterdir()), "Snakemake's own lock is still there"

    (small.folder / "go").touch()
    (small.folder / "fail").write_text("the disk of A is full: free some space")
    failed = small.snakemake(*CALL)
    assert failed.returncode != 0 and f"process {process.pid} on " in failed.stderr
    assert failed.stderr.splitlines()[-1] == "error: the disk of A is full: free some space", failed.stderr
    assert "LockException" not in failed.stderr

    (small.folder / "fail").unlink()
    done = small.snakemake(*CALL)
    assert done.returncode == 0 and (small.folder / "results" / "table98.csv").exists()
    assert "error" not in done.stderr and "was killed" not in done.stderr


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (UserError("no space on A:\nfree some"), SystemExit, "no space on A: free some"),
        (KeyError("seeds"), KeyError, "rule table2 met a fault of this suite (KeyError: 'seeds'): the.log has all of it"),
    ],
)
def test_a_job_keeps_what_it_could_not_do_for_the_last_lines(tmp_path, monkeypatch, error, raised, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "1")  # a job sets them
    with pytest.raises(raised), load("workflow/scripts/job.py").job(types.SimpleNamespace(threads=1, log=["the.log"], rule="table2", input=[])):
        raise error
    assert (tmp_path / ERRORS).read_text() == said + "\n"
    assert ("Traceback" in Path("the.log").read_text()) == (raised is KeyError)


def test_the_last_line_names_the_log_of_the_run_that_failed(tmp_path, monkeypatch):
    """Where runs share a job, each has a log of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "1")
    script = load("workflow/scripts/job.py")
    given = types.SimpleNamespace(threads=1, log=["first.log", "second.log"], rule="train_60m", input=[])
    with pytest.raises(KeyError), script.job(given), script.logged("second.log"):
        raise KeyError("seeds")
    assert (tmp_path / ERRORS).read_text().endswith(": second.log has all of it\n")
    assert "Traceback" in Path("second.log").read_text() and "Traceback" not in Path("first.log").read_text()


def test_a_job_that_has_ended_has_the_scheduler_do_nothing_more(tmp_path, repository):
    """It would set a timer for each, which sets the next one, for as long as the pipeline runs."""
    (line,) = (line for line in (repository / "workflow" / "Snakefile").read_text().splitlines() if "job_rate_limiter" in line)
    (tmp_path / "Snakefile").write_text(f"""
import threading
onstart:
{line}
onsuccess:
    print("timers:", sum(isinstance(thread, threading.Timer) for thread in threading.enumerate()))
rule all:
    input: expand("{{i}}.txt", i=range(6))
rule one:
    output: "{{i}}.txt"
    shell: "touch {{output}}"
""")
    done = subprocess.run([sys.executable, "-m", "snakemake", "--cores", "1"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "timers: 0" in done.stdout
