"""How long the job that a run is in may still take.

A cluster's warning is not enough: where Slurm tracks processes by cgroups, as most sites do, SIGTERM reaches the first process
of a step alone, which is Snakemake and does not hand it on.
"""

from __future__ import annotations

import math
import os
import re
import subprocess


def seconds_left() -> float:
    """Seconds that the Slurm job of this process has left, by Slurm's own clock.

    Infinite outside of a job, without a time limit, and where ``squeue`` cannot be asked: then the run goes on until it is ended.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return math.inf
    try:
        asked = subprocess.run(["squeue", "-h", "-j", job, "-o", "%L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return math.inf
    return parse(asked.stdout.strip())


def parse(left: str) -> float:
    """Seconds of a Slurm duration, ``[days-][hours:]minutes:seconds``; infinite for a word such as UNLIMITED."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", left)
    if found is None:
        return math.inf
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 86400.0 * days + 3600 * hours + 60 * minutes + seconds
