"""Kills of a whole pipeline at random moments: ``python tests/workflow/kills.py 40`` prints a line for each, and exits with 1 if one
needed a human.

A kill (SIGKILL) takes Snakemake with all that it started, or Snakemake alone. A call that ends by itself has to have succeeded; then
results, and now and then the data, are removed, so that there is something to kill again.
"""

import argparse
import contextlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

ROWS = ("adamw", "poet-fs-1_2", "galore")
TARGETS = ("results/table8.csv", *(f"results/runs/smoke/60m/{row}/seed0/record.json" for row in ROWS))
CALL = (*TARGETS, "--config", "scale=smoke")
#: Seconds that the last call has, which nothing kills.
LAST_CALL = 600.0


def kill(process: subprocess.Popen, alone: bool) -> int:
    """Kill a pipeline with its jobs, or its first process alone.

    Returns:
        How many processes that were: none where the pipeline had ended by itself before the signal reached it.
    """
    first = psutil.Process(process.pid)  # there until it is waited for, if only as a zombie, which takes signals and does nothing
    first.suspend()  # it starts no more
    those = [first] if alone else [first, *first.children(recursive=True)]
    for one in those:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    return len(those) if process.wait() == -signal.SIGKILL else 0


def kills(project, number: int, longest: float, seed: int) -> Iterator[tuple[str, bool]]:
    """Kill a pipeline so many times, and let it come to its end after each and at last.

    Args:
        project: a copy of the repository, with ``folder`` and ``command``.
        number: of kills.
        longest: seconds until one.
        seed: of the moments.

    Yields:
        What happened, and whether it went without a human.
    """
    draw, done = random.Random(seed), 0
    while done <= number:
        with open(project.folder / "output.txt", "w") as output:  # no pipe, which jobs that are left would keep open
            process = subprocess.Popen(project.command(*CALL), cwd=project.folder, stdout=output, stderr=output, start_new_session=True)
        started, moment = time.monotonic(), draw.uniform(0, longest) if done < number else LAST_CALL
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        alone = draw.random() < 0.3
        killed = 0 if process.returncode is not None else kill(process, alone)
        if not killed:  # it ended by itself
            missing = [target for target in TARGETS if not (project.folder / target).exists()]
            good = process.returncode == 0 and not missing
            last = "" if good else f", {', '.join(missing)} missing: {(project.folder / 'output.txt').read_text()}"
            yield f"ended by itself after {time.monotonic() - started:.0f} s, exit code {process.returncode}{last}", good
            if done == number or not good:
                return
            shutil.rmtree(project.folder / "results")
            if draw.random() < 0.3:
                for folder in (project.folder / "data").glob("*-64-*"):
                    shutil.rmtree(folder)
            continue
        if done == number:
            yield f"the last call, which nothing was to kill, had not ended after {moment:.0f} s", False
            return
        done += 1
        yield f"kill {done} after {moment:.1f} s: {'Snakemake alone' if alone else f'{killed} processes'}", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("number", type=int)
    parser.add_argument("--longest", type=float, default=40.0, help="seconds until a kill")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from conftest import Project

    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project")
        project.edit("config/scales/smoke.yaml", ", runs_per_job: 15", "")
        bad = 0
        for what, good in kills(project, given.number, given.longest, given.seed):
            bad += not good
            print(what if good else f"NEEDS A HUMAN: {what}", flush=True)
    print(f"{given.number} kills, {bad} that needed a human")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
