"""What the workflow needs to know, worked out once: scale, artifacts, runs and their inputs."""

from __future__ import annotations

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

    def default_targets(self) -> list[Path]:
        """What ``snakemake all`` makes."""
        return [RESULTS / output for a in self.artifacts.values() if a.in_all for output in a.outputs]


def training_sources() -> list[str]:
    """Source files that a run's numbers depend on: a change in one makes the runs stale."""
    parts = ("*.py", "kernels/*.py", "methods/*.py", "training/*.py", "data/rows.py")
    return sorted(str(p.relative_to(ROOT)) for part in parts for p in (ROOT / "poet").glob(part))


def data_sources() -> list[str]:
    """Source files that the prepared data depends on."""
    return sorted(str(p.relative_to(ROOT)) for p in (ROOT / "poet" / "data").glob("*.py") if p.name != "rows.py")


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


def artifact_sources(name: str) -> list[str]:
    """Source files that an artifact depends on: its own, and what artifacts share."""
    folder = ROOT / "analyses"
    shared = [p for p in folder.glob("*.py") if p.stem not in discover()]
    own = [folder / f"{name}.py", *(folder / "published").glob("*.csv")]
    return sorted(str(p.relative_to(ROOT)) for p in (*shared, *own))
