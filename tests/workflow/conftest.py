"""A copy of the project for each test to run Snakemake in, with the corpus cache shared between them all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from suite.collection import load_suite
from suite.discovery import locate

ROOT = Path(__file__).resolve().parents[2]
#: The file of an artifact with a run of Table 2 for each seed: the example of docs/extending.md.
ARTIFACT = (ROOT / "docs" / "examples" / "table99.py").read_text()


class Project:
    """A copy of what Snakemake needs, and the ways to call it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in ("poet", "suite", "analyses", "config", "workflow"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.parquet"))  # with what is compiled already
        for part in ("environment.yml", "requirements.lock"):
            shutil.copy(ROOT / part, folder)
        (ROOT / "data" / "cache").mkdir(parents=True, exist_ok=True)
        (folder / "data").mkdir()
        (folder / "data" / "cache").symlink_to(ROOT / "data" / "cache")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess:
        # Compiled files appear beside the sources, as they do on a user's machine.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return subprocess.run(
            self.command(*arguments), cwd=self.folder, env=environment, capture_output=True, text=True, timeout=1800
        )

    def tune(self, *arguments: str) -> subprocess.CompletedProcess:
        """``python -m suite.tuning``."""
        return self.module("suite.tuning", *arguments)

    def recorded(self, *arguments: str) -> subprocess.CompletedProcess:
        """``python -m suite.recorded``."""
        return self.module("suite.recorded", *arguments)

    def module(self, name: str, *arguments: str) -> subprocess.CompletedProcess:
        """``python -m``, with the copy's code."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        command = [sys.executable, "-m", name, *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=1800)

    def keep(self, *names: str) -> None:
        """Leave artifacts alone, and remove the others."""
        for name, path in locate(self.folder).items():
            if name not in names:
                path.unlink()

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text()
        assert old in text, f"{path} has no {old!r}"
        (self.folder / path).write_text(text.replace(old, new, 1))


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


@pytest.fixture(scope="session")
def suite():
    """The smoke scale's suite."""
    return load_suite({"scale": "smoke", "seeds": [0]})


#: Artifacts whose runs others have, too, or that have none. Snakemake makes the others; these are built from
#: the recorded runs with them (``test_everything_is_built_from_recorded_runs``).
OF_A_KIND = {
    *(f"figure{number}" for number in (3, 4, 7, 8, *range(11, 27))),
    "table1",
    "table8",
    "table9",
    "table10",
}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A project in which every run was trained at smoke scale, and an artifact of each kind made, once for all tests that look at what it made."""
    project = Project(tmp_path_factory.mktemp("made") / "project")
    project.keep(*(locate(project.folder).keys() - OF_A_KIND))
    project.edit("config/tuning.yaml", "trials: 12, at_most: 12", "trials: 2, at_most: 2")  # two rounds are enough to see how they follow each other
    project.tuned = project.tune("--scale", "smoke", "--rows", "adamw", "--lengths", "1/2")
    project.first = project.snakemake("all", "results/lr_sweep.csv", "results/ladder.csv", "--config", "scale=smoke")
    return project
