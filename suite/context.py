"""What an artifact is built from: the scale, and the records of its runs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from poet.finetuning.spec import FinetuningSpec
from poet.launch.records import read_file, read_history, read_probes, read_record
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.scale import Scale


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs of an artifact's build.

    Attributes:
        scale: the scale with its seeds.
        results: the folder that artifacts are written to; :meth:`table` reads their tables from it.
        left_out: the reasons why artifacts could not be built, by name; the report and the claims do without these artifacts.
        narrowed: the part of the scale at which an artifact is built that lacks runs of other models or seeds, by its name.
        home: the results folder that holds the runs; None stands for ``results``.
    """

    scale: Scale
    results: Path
    left_out: Mapping[str, str] = field(default_factory=dict)
    narrowed: Mapping[str, Scale] = field(default_factory=dict)
    home: Path | None = None

    def __post_init__(self) -> None:
        if self.home is None:
            object.__setattr__(self, "home", self.results)

    def of(self, name: str) -> "Context":
        """The inputs of an artifact's build: with fewer models or seeds if it is among :attr:`narrowed`."""
        return replace(self, scale=self.narrowed[name]) if name in self.narrowed else self

    def trained(self, spec: RunSpec | FinetuningSpec) -> bool:
        """Whether a run has a record."""
        return (self.home / "runs" / spec.name / "record.json").exists()

    def record(self, spec: RunSpec | FinetuningSpec) -> dict[str, Any]:
        """The record of a run, or of a finetuning run; see :func:`poet.launch.records.read_record` for the errors."""
        return read_record(self.home, spec)

    def history(self, spec: RunSpec) -> pd.DataFrame:
        """The history of a run, one line for each measured step; NaN where a column was not measured. :func:`poet.launch.records.read_file` has the errors."""
        return pd.DataFrame(read_history(read_file(self.home, spec, "history.csv").decode())).astype(float)

    def summaries(self, spec: FinetuningSpec) -> list[str]:
        """The summaries that a run wrote, in the order of its validation documents; none if it diverged. :func:`poet.launch.records.read_file` has the errors."""
        return [json.loads(line)[0] for line in read_file(self.home, spec, "summaries.jsonl").splitlines()]

    def probes(self, spec: RunSpec) -> dict[str, np.ndarray]:
        """What a run's probes measured; see :func:`poet.launch.records.read_probes`."""
        return read_probes(self.home, spec)

    def table(self, name: str) -> pd.DataFrame:
        """The CSV of another artifact. The artifact that calls this has to name it in ``Artifact.reads``.

        Raises:
            RunError: the CSV is missing; the message has the command that makes it.
        """
        path = self.results / f"{name}.csv"
        if not path.exists():
            raise RunError(f"{path} is missing: snakemake --cores all {path} --config scale={self.scale.name} 'seeds={list(self.scale.seeds)}'")
        return pd.read_csv(path, keep_default_na=False, na_values=[""])
