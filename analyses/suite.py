"""What the workflow needs to know, worked out once: scale, artifacts, runs and their inputs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyses.artifact import Artifact, collect_runs, discover
from analyses.scale import ROOT, ConfigError, Scale, dataset_name, load_scale
from poet.training.spec import RunSpec

RESULTS = Path("results")
DATA = Path("data")


@dataclass(frozen=True, slots=True)
class Suite:
    """Everything that the rules read.

    Attributes:
        scale: see :class:`analyses.scale.Scale`.
        artifacts: by name.
        runs: every distinct run by name.
    """

    scale: Scale
    artifacts: dict[str, Artifact]
    runs: dict[str, RunSpec]

    @property
    def dataset(self) -> Path:
        """Folder of the scale's prepared data."""
        return DATA / dataset_name(self.scale.data)

    def records(self, name: str) -> list[Path]:
        """The records that an artifact reads."""
        return [RESULTS / "runs" / spec.name / "record.json" for spec in self.artifacts[name].runs(self.scale)]

    def digests(self, name: str) -> list[str]:
        """Digests of the specs that an artifact reads: it is remade when one changes."""
        return [spec.digest for spec in self.artifacts[name].runs(self.scale)]

    def pattern(self, model: str) -> str:
        """A regular expression for the names of a model's runs; one that matches nothing if there are none."""
        return "|".join(re.escape(name) for name, spec in self.runs.items() if spec.model == model) or "(?!)"

    def default_targets(self) -> list[Path]:
        """What ``snakemake all`` makes."""
        return [RESULTS / output for a in self.artifacts.values() if a.in_all for output in a.outputs]


def _digest(files: Iterable[Path]) -> str:
    """sha256 over names and contents: a rule that has it among its params is run again when a source changes, and not
    when one was only touched or checked out anew."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def training_sources() -> str:
    """Digest of the source files that a run's numbers depend on."""
    parts = ("*.py", "kernels/*.py", "methods/*.py", "training/*.py", "data/rows.py")
    return _digest(path for part in parts for path in (ROOT / "poet").glob(part))


def data_sources() -> str:
    """Digest of the source files that the prepared data depends on."""
    return _digest(path for path in (ROOT / "poet" / "data").glob("*.py") if path.name != "rows.py")


def artifact_sources(name: str) -> str:
    """Digest of the source files that an artifact depends on: its own, and what artifacts share."""
    folder, artifacts = ROOT / "analyses", discover()
    shared = (path for path in folder.glob("*.py") if path.stem not in artifacts)
    return _digest([folder / f"{name}.py", *shared, *(folder / "published").glob("*")])


def load_suite(config: dict[str, Any]) -> Suite:
    """The suite for a configuration.

    Raises:
        ConfigError: in one sentence, for anything that the user wrote wrong.
    """
    scale = load_scale(config)
    artifacts = discover()
    try:
        return Suite(scale, artifacts, collect_runs(artifacts, scale))
    except ValueError as error:
        raise ConfigError(f"scale {scale.name}: {error}") from None
