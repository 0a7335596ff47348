"""A copy of the project whose jobs go to the cluster."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from tests.slurm.cluster import slurm
from tests.workflow.conftest import Project


class SlurmProject(Project):
    """Snakemake is called with the profile under test, but looks at its jobs more often and gives up sooner."""

    def command(self, *arguments: str) -> list[str]:
        profile = ["--profile", "workflow/profiles/slurm", "--retries", "2"]
        return [sys.executable, "-m", "snakemake", *profile, "--slurm-init-seconds-before-status-checks", "2", *arguments]


class Pipeline:
    """Snakemake at work in a project while a test does something else; it ends with the ``with`` block.

    Attributes:
        folder: of the project.
        process: Snakemake's.
    """

    def __init__(self, project: Project, *arguments: str) -> None:
        self.folder, self.process = project.folder, None
        self._command = project.command(*arguments)

    def __enter__(self) -> "Pipeline":
        with open(self.folder / "output.txt", "w") as output:
            # A shell that starts the tests in the background has Ctrl-C ignored, and so would Snakemake.
            self.process = subprocess.Popen(
                self._command, cwd=self.folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.interrupt()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)

    def interrupt(self) -> None:
        """What Ctrl-C does in a terminal."""
        os.killpg(self.process.pid, signal.SIGINT)

    @property
    def output(self) -> str:
        return (self.folder / "output.txt").read_text()

    def finish(self, seconds: float = 480) -> int:
        """Wait for its end; the exit code."""
        return self.process.wait(seconds)

    def until(self, ready: Callable[[], bool], seconds: float = 180) -> None:
        """Wait until ``ready()``; an error with what Snakemake printed where it ends before, or the time is up."""
        deadline = time.monotonic() + seconds
        while not ready():
            assert self.process.poll() is None, self.output[-5000:]
            assert time.monotonic() < deadline, self.output[-5000:] + slurm("squeue")
            time.sleep(0.3)

    def jobs(self, rule: str = "") -> list[dict[str, str]]:
        """What ``scontrol`` says of the jobs of this project whose rule (and run) begins so, oldest first."""
        lines = slurm("scontrol", "show", "job", "--oneliner", check=False).splitlines()
        jobs = [dict(part.split("=", 1) for part in line.split() if "=" in part) for line in lines]
        own = [job for job in jobs if job.get("WorkDir") == str(self.folder)]
        return [job for job in own if job["Comment"].startswith(f"rule_{rule}")]

