"""What a table or figure has to say of itself, and what it is given to build from."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import analyses
from analyses.claim import Claim
from analyses.scale import Scale
from poet.training.errors import RunError
from poet.launch.records import read_history, read_probes, read_record, reading
from poet.training.spec import RunSpec
from suite.recorded.origin import sentence


#: See :attr:`Artifact.reads`.
EVERY = "*"


@dataclass(frozen=True, slots=True)
class Context:
    """What an artifact builds from.

    Attributes:
        scale: the scale with its seeds.
        results: the results folder.
        left_out: artifacts that could not be built, by name, with the reason; the report and the claims do without them.
    """

    scale: Scale
    results: Path
    left_out: Mapping[str, str] = field(default_factory=dict)

    def record(self, spec: RunSpec) -> dict[str, Any]:
        """The record of a run; see :func:`poet.launch.records.read_record` for the errors."""
        return read_record(self.results, spec)

    def history(self, spec: RunSpec) -> pd.DataFrame:
        """The history of a run, one line a measured step; NaN where a column was not measured.

        Raises:
            RunError: missing or unreadable; the sentence has the command that makes it again.
        """
        self.record(spec)  # refuses files that another spec left under this name
        with reading(self.results, spec, "history.csv") as path:
            return pd.DataFrame(read_history(path)).astype(float)

    def probes(self, spec: RunSpec) -> dict[str, np.ndarray]:
        """What a run's probes measured; see :func:`poet.training.probes.read_probes`."""
        return read_probes(self.results, spec)

    def table(self, name: str) -> pd.DataFrame:
        """The CSV of another artifact, which has to stand in ``Artifact.reads`` of the one that asks.

        Raises:
            RunError: it is not there; the sentence has the command that makes it.
        """
        path = self.results / f"{name}.csv"
        if not path.exists():
            raise RunError(f"{path} is missing: snakemake --cores all {path} --config scale={self.scale.name}")
        return pd.read_csv(path, keep_default_na=False, na_values=[""])

    def caption(self, artifact: Artifact, note: str = "") -> str:
        """An artifact's label and caption with the scale, a note if there is one, and which runs were recorded and not trained here."""
        scale = "Independent of the scale." if artifact.scale_free else f"Scale: {self.scale.name}, {self.scale.corpus}."
        recorded = sentence(self.results, artifact.runs(self.scale))
        return " ".join(part for part in (f"{artifact.label}.", artifact.caption, note, scale, recorded) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One table or figure.

    Attributes:
        label: its name in the paper.
        caption: one sentence; the scale is added to it where it is shown.
        outputs: files below ``results/``, the first one being its target's name.
        runs: the runs it needs at a scale.
        build: writes every file of ``outputs``.
        in_all: whether ``snakemake all`` makes it (sweeps are asked for by name).
        scale_free: its numbers come from formulas and simulations alone, and are the same at every scale.
        models: it cannot do without these; ``snakemake all`` leaves it out at a scale that lacks one.
        claims: what the paper says about it that can be checked; gathered in ``results/claims.csv``.
        reads: names of artifacts whose outputs it is built from; :data:`EVERY` stands for all of ``snakemake all`` that
            read no other.
    """

    label: str
    caption: str
    outputs: tuple[str, ...]
    runs: Callable[[Scale], list[RunSpec]]
    build: Callable[[Context], None]
    in_all: bool = True
    scale_free: bool = False
    models: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    reads: tuple[str, ...] = ()


def find(name: str) -> Artifact | None:
    """The artifact of a file in this folder; None if the file is shared code."""
    return getattr(importlib.import_module(f"analyses.{name}"), "ARTIFACT", None)


def discover() -> dict[str, Artifact]:
    """Every artifact by the name of its file, Figure 2 before Figure 10."""
    names = sorted((info.name for info in pkgutil.iter_modules(analyses.__path__)), key=_natural)
    return {name: artifact for name in names if (artifact := find(name)) is not None}


def _natural(name: str) -> tuple[str, int]:
    word = name.rstrip("0123456789")
    return word, int(name[len(word) :] or 0)


def collect_runs(artifacts: dict[str, Artifact], scale: Scale) -> dict[str, RunSpec]:
    """Every distinct run that the artifacts ask for, by name: each is trained once.

    Raises:
        ValueError: two artifacts use one name for different specs.
    """
    grid: dict[str, RunSpec] = {}
    for name, artifact in artifacts.items():
        for spec in artifact.runs(scale):
            if (known := grid.setdefault(spec.name, spec)) != spec:
                fields = [f.name for f in dataclasses.fields(spec) if getattr(spec, f.name) != getattr(known, f.name)]
                raise ValueError(
                    f"analyses/{name}.py: run {spec.name} stands for two different specs, which differ in {', '.join(fields)}: "
                    "make them the same (probes: after the same steps), or different in number"
                )
    return grid
