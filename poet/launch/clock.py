"""When a run saves its progress, and when it stops before its Slurm job ends."""

import contextlib
import math
import os
import re
import subprocess
import time
from collections.abc import Iterator
from signal import SIGTERM

#: Largest share of a run's time that goes into saving: a large model takes long to save.
SAVING = 0.05
#: Seconds before the end of the job at which a run saves its progress and ends.
MARGIN = 180.0
#: In a short job the margin is this share of the time left at the start, if that is less.
SHARE = 0.1


def seconds_left() -> float:
    """Seconds that the Slurm job of this process has left, by Slurm's own clock.

    Infinite outside of a job, without a time limit, and if ``squeue`` fails: then the run goes on until it is killed.

    Slurm's SIGTERM before the end is not enough: with processes tracked by cgroups, as at most sites, it reaches only the first
    process of a job step, which is Snakemake, and Snakemake does not pass it on.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return math.inf
    try:
        # One task of a job array has the array's number, for which all tasks are listed: %A is the number of each.
        asked = subprocess.run(["squeue", "-h", "-j", job, "-o", "%A %L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return math.inf
    left = re.search(rf"^{re.escape(job)} +(\S+)", asked.stdout, re.MULTILINE)
    return duration(left[1]) if left else math.inf


def duration(left: str) -> float:
    """Seconds of a Slurm duration, ``[days-][hours:]minutes:seconds``; infinite for a word such as UNLIMITED."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", left)
    if found is None:
        return math.inf
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 86400.0 * days + 3600 * hours + 60 * minutes + seconds


class Clock:
    """The time of a run in this process, from its first step on.

    Args:
        every: minimum seconds between two checkpoints.
        watch_job: whether to stop before the Slurm job ends; one process of a run watches it.
    """

    def __init__(self, every: float, watch_job: bool = True) -> None:
        left = seconds_left() if watch_job else math.inf
        self._every, self._cost, self._saved = every, 0.0, time.monotonic()
        self._ends, self._margin = self._saved + left, min(MARGIN, SHARE * left)

    def due(self, last: bool) -> bool:
        """Whether to save after this step. After the last step the cost of saving does not count: the final evaluation may take long."""
        return time.monotonic() - self._saved >= (self._every if last else max(self._every, self._cost / SAVING))

    def ending(self) -> int:
        """SIGTERM once the job has less time left than the margin, or than three saves take; 0 before."""
        return SIGTERM if time.monotonic() > self._ends - max(self._margin, 3 * self._cost) else 0

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """A context around saving a checkpoint, which measures its time."""
        begun = time.monotonic()
        yield
        self._saved = time.monotonic()
        self._cost = self._saved - begun


def stopped(name: str, step: int, number: int, of_job: bool = False) -> str:
    """The last sentence of a run that a signal, or the coming end of its job, ends before its last step."""
    why = "at the end of the job's time" if of_job else f"by signal {number}"
    return f"{name}: stopped {why} after step {step}: saved, the next call goes on"
