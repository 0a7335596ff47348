"""One pipeline at a time in a folder: its lock, cleaning up after a killed one, and the errors of its jobs.

Snakemake's own lock only keeps pipelines with equal outputs apart, and it outlives a killed process. A pipeline therefore holds an
operating-system lock on a file, which ends with the process, and writes its host and process number into that file. On a file system
without such locks, the process number is compared with the processes that are running.
"""

import atexit
import contextlib
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import psutil

from poet.system.errors import UserError
from poet.system.files import try_lock
from poet.system.progress import say

SNAKEMAKE = Path(".snakemake")
#: Host and process of the running pipeline; empty if none runs.
HOLDER = SNAKEMAKE / "pipeline.json"
#: The errors of the last pipeline's jobs, one a line.
ERRORS = SNAKEMAKE / "errors.txt"
#: Environment variable with the pipeline's name, which all its jobs inherit.
NAME = "POET_PIPELINE"
#: Time for the jobs of a killed pipeline to save and end.
SECONDS_TO_SAVE = 120
#: Number of errors that are repeated at the end.
REPEATED = 10


def lock_folder() -> None:
    """Lock this folder until the process ends, and end the jobs that a pipeline killed on this host left behind.

    Raises:
        UserError: another pipeline runs here, or one of another host left its name in the file.
    """
    file = _locked()
    if before := _holder():
        if before["host"] != socket.gethostname():
            raise UserError(
                f"{_named(before)} began a pipeline in {Path.cwd()} and has not ended it: wait for it; if it is gone, `make unlock` "
                "(`snakemake --unlock`), then call again"
            )
        shutil.rmtree(SNAKEMAKE / "locks", ignore_errors=True)
        ended = _end_jobs(before["name"])
        say(f"note: {_named(before)} was killed at work here: its lock is cleared" + (f", and {ended} processes that it left were ended" if ended else ""))
    name = f"{socket.gethostname()}-{os.getpid()}-{time.time():.0f}"
    file.truncate(0)
    file.write(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": psutil.Process().create_time(), "name": name}))
    file.flush()
    os.fsync(file.fileno())  # before Snakemake takes its own lock, so that after a power cut this file tells whose lock it was
    ERRORS.unlink(missing_ok=True)
    os.environ[NAME] = name
    atexit.register(_end, file)


def unlock() -> None:
    """Clear the name of a pipeline that did not end.

    Raises:
        UserError: it is still running.
    """
    with _locked() as file:
        file.truncate(0)


def _locked() -> TextIO:
    """:data:`HOLDER`, opened and locked."""
    try:
        SNAKEMAKE.mkdir(exist_ok=True)
        file = open(HOLDER, "a", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{HOLDER.absolute()} cannot be written ({error.strerror}): it is whose pipelines run here; work in a clone of your own, or make .snakemake, results and data writable") from None
    locked, holder = try_lock(file), _holder()
    if locked is False or (locked is None and holder and _lives(holder)):
        who = _named(holder) if holder else "another process"
        raise UserError(f"{who} is at work in {Path.cwd()}: wait for it or end it, then call again")
    if locked is None:
        say(f"note: the file system of {Path.cwd()} has no locks: a second pipeline that starts at the same moment, or on another machine, may not be noticed")
    return file


def _holder() -> dict[str, Any] | None:
    """The pipeline named in :data:`HOLDER`; None if it ended."""
    try:
        found = json.loads(HOLDER.read_text(encoding="utf-8"))
        return {"host": str(found["host"]), "pid": int(found["pid"]), "started": float(found["started"]), "name": str(found["name"])}
    except (ValueError, TypeError, KeyError):  # empty, or killed while it wrote
        return None


def _lives(holder: dict[str, Any]) -> bool:
    """Whether the pipeline still runs on this host. Start times are compared, since a new process may have its number."""
    try:
        return holder["host"] == socket.gethostname() and abs(psutil.Process(holder["pid"]).create_time() - holder["started"]) < 1
    except psutil.NoSuchProcess:
        return False


def _named(holder: dict[str, Any]) -> str:
    return f"process {holder['pid']} on {holder['host']}"


def _end_jobs(pipeline: str) -> int:
    """End the processes of a killed pipeline on this host; training saves first. Returns their number."""
    left = list(_jobs(pipeline))
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(left, timeout=SECONDS_TO_SAVE)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=10)
    return len(left)


def _jobs(pipeline: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            theirs = process.environ()
            # A Slurm job goes on without its pipeline, by design.
            if theirs.get(NAME) == pipeline and theirs.get("SLURM_JOB_ID") == os.environ.get("SLURM_JOB_ID"):
                yield process


def note_error(sentence: str) -> None:
    """Keep a job's error for the end of the pipeline."""
    SNAKEMAKE.mkdir(exist_ok=True)
    with open(ERRORS, "a", encoding="utf-8") as file:
        file.write(" ".join(sentence.split()) + "\n")


def failed() -> None:
    """Have this process repeat the errors as its last lines."""
    global _failed
    _failed = True


_failed = False


def last_lines(errors: Iterable[str]) -> list[str]:
    """The last lines of a failed pipeline: each error once."""
    errors = list(dict.fromkeys(errors))
    if not errors:
        return ["error: the pipeline was stopped, or a job ended without a word: its log, named above, has what it said; call again, and what is done stays"]
    more = [f"and {len(errors) - REPEATED} more before: {ERRORS}"] if len(errors) > REPEATED else []
    return [*more, *(f"error: {error}" for error in errors[-REPEATED:])]


def _end(file: TextIO) -> None:
    if _failed:
        errors = ERRORS.read_text(encoding="utf-8").splitlines() if ERRORS.exists() else []
        print("\n".join(last_lines(errors)), file=sys.stderr, flush=True)
    file.truncate(0)
    file.close()
