"""One pipeline at a time: a live one is named, a killed one is cleared away with its jobs, one of another host asks for a word."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

from poet.system.errors import UserError
from suite import pipeline
from suite.begin import begin, works
from suite.pipeline import ERRORS, HOLDER, NAME, last_lines

#: The package itself imports torch, which takes longer than these processes live.
LIGHT = """
import os, sys, types
poet = types.ModuleType("poet")
poet.__path__ = [os.path.join(os.environ["PYTHONPATH"], "poet")]
sys.modules["poet"] = poet
"""
HOLD = LIGHT + """
import subprocess, sys, time
from suite.pipeline import lock_folder
lock_folder()
job = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(job.pid, flush=True)
time.sleep(600)
"""
LOCK = LIGHT + """
from poet.system.errors import UserError
from suite.pipeline import failed, lock_folder, note_error
try:
    lock_folder()
except UserError as error:
    sys.exit(f"error: {error}")
for word in sys.argv[1:]:
    note_error(word)
    failed()
"""


def call(code, folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(Path(pipeline.__file__).resolve().parents[1])}
    return subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def holding(tmp_path, repository):
    """A process that holds the folder, and the number of a job that it started."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(repository)}, stdout=subprocess.PIPE, text=True
    )
    job = int(process.stdout.readline())
    yield process, job
    for pid in (process.pid, job):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()


def test_a_live_pipeline_is_refused_by_name_and_a_killed_one_is_cleared_with_its_jobs(holding, tmp_path):
    process, job = holding
    (tmp_path / ".snakemake" / "locks").mkdir()
    (tmp_path / ".snakemake" / "locks" / "0.output.lock").write_text("results/table2.csv\n")
    refused = call(LOCK, tmp_path)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert refused.stderr.startswith(f"error: process {process.pid} on ") and "wait for it or end it" in refused.stderr
    assert (tmp_path / ".snakemake" / "locks").exists()

    process.kill()
    process.wait()
    assert Path(f"/proc/{job}").exists()
    taken = call(LOCK, tmp_path)
    assert taken.returncode == 0, taken.stderr
    assert f"process {process.pid} on " in taken.stderr and "1 processes that it left were ended" in taken.stderr
    assert not (tmp_path / ".snakemake" / "locks").exists()
    assert not Path(f"/proc/{job}").exists() or "Z" in Path(f"/proc/{job}/stat").read_text().rpartition(")")[2]
    assert call(LOCK, tmp_path).stderr == "", "one that has ended leaves nothing to say"


def test_a_pipeline_of_another_host_is_cleared_by_unlock_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    HOLDER.parent.mkdir()
    HOLDER.write_text(json.dumps({"host": "node7", "pid": 12, "started": 0, "name": "node7-12-0"}))
    refused = call(LOCK, tmp_path)
    assert refused.returncode == 1
    assert "error: process 12 on node7 began a pipeline" in refused.stderr and "`make unlock`" in refused.stderr
    pipeline.unlock()
    assert call(LOCK, tmp_path).returncode == 0


def test_a_live_pipeline_cannot_be_unlocked(holding, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"process {holding[0].pid} on .* is at work"):
        pipeline.unlock()


def test_of_pipelines_that_start_at_the_same_moment_one_has_the_folder(tmp_path):
    """A lock that looks first and writes afterwards lets two pass."""
    together = LIGHT + """
from poet.system.errors import UserError
from suite.pipeline import lock_folder
print("ready", flush=True)
sys.stdin.readline()
try:
    lock_folder()
except UserError:
    sys.exit(print("refused", flush=True))
print("has it", flush=True)
sys.stdin.readline()
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(pipeline.__file__).resolve().parents[1])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", together], cwd=tmp_path, env=environment, **pipes) for _ in range(4)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 4
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(process.stdout.readline() for process in processes) == ["has it\n", *["refused\n"] * 3]
    for process in processes:
        process.communicate()


@pytest.fixture
def without_locks(tmp_path, monkeypatch):
    """A folder on a file system without locks."""

    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fcntl.flock", flock)


def test_a_file_system_without_locks_is_named(without_locks, capsys):
    with pipeline._locked():
        assert "has no locks: a second pipeline that starts at the same moment" in capsys.readouterr().err


def test_a_live_pipeline_is_refused_without_locks_too(holding, without_locks):
    """Otherwise its jobs would be ended as those of a killed one."""
    with pytest.raises(UserError, match=f"process {holding[0].pid} on .* is at work"):
        pipeline.lock_folder()
    assert Path(f"/proc/{holding[1]}").exists()


def test_a_number_that_another_process_has_now_is_no_live_pipeline(holding, without_locks):
    was = json.loads(HOLDER.read_text())
    HOLDER.write_text(json.dumps(was | {"started": was["started"] - 60}))
    pipeline.unlock()
    assert pipeline._holder() is None


def test_a_holder_that_was_cut_short_is_nobody(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    HOLDER.parent.mkdir()
    for content in (b"", b'{"host": "a', b"[]", b'{"pid": 1}', b"\x00" * 80, b"\xff", b'{"host": "a", "pid": null, "name": "a"}'):
        HOLDER.write_bytes(content)
        assert pipeline._holder() is None, content
        assert call(LOCK, tmp_path).returncode == 0, content


def test_a_folder_that_is_somebody_else_s_is_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    HOLDER.parent.touch()  # root may write to any folder
    with pytest.raises(UserError, match="pipeline.json cannot be written .* work in a clone of your own"):
        pipeline.lock_folder()


def test_results_that_cannot_be_written_are_refused_before_anything_is_locked(smoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to("/proc")  # where not even root can write
    with pytest.raises(UserError, match=f"^nothing can be written to {tmp_path / 'results'} .*: make it writable, or free space$"):
        begin(smoke, {}, get_argument_parser().parse_args(["results/table2.csv"]))
    assert not HOLDER.exists()


def test_who_is_at_work_is_on_the_disk_before_snakemake_locks_anything(tmp_path, monkeypatch):
    """Or a power cut leaves Snakemake's lock, and nobody whom it belongs to."""
    synced = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pipeline.atexit, "register", lambda *_: None)
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    monkeypatch.setenv(NAME, "")
    pipeline.lock_folder()
    assert synced == [HOLDER.stat().st_size] and synced[0]


def test_errors_of_jobs_are_the_last_lines_and_each_is_said_once(tmp_path):
    done = call(LOCK, tmp_path, "first: do this", "second:\ndo that", "first: do this")
    assert done.stderr.splitlines()[-2:] == ["error: first: do this", "error: second: do that"]
    assert NAME not in os.environ
    call(LOCK, tmp_path)
    assert not (tmp_path / ERRORS).exists(), "they are those of the last pipeline"


def test_many_errors_are_counted_and_none_has_a_sentence():
    lines = last_lines(str(number) for number in range(25))
    assert lines[0].startswith("and 15 more") and lines[-1] == "error: 24" and len(lines) == 11
    (only,) = last_lines([])
    assert only.startswith("error: the pipeline was stopped, or a job ended without a word")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--cores all results/table2.csv --config scale=mini", True),
        ("-np all", False),
        ("--summary a b", False),
        ("--cores 1 --nolock", False),
        ("--unlock", False),
        ("--cores 1 --touch all", True),
        ("--cores 1 --delete-all-output", True),
    ],
)
def test_a_command_line_says_whether_it_works(line, expected):
    assert works(get_argument_parser().parse_args(line.split())) == expected
