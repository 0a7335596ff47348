"""What the workflow needs to know, worked out once: scale, artifacts, runs and their inputs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyses.artifact import EVERY, Artifact, collect_runs, discover
from analyses.scale import ROOT, ConfigError, Scale, dataset_name, load_scale
from poet.launch.sources import data_digest, digest, training_digest
from poet.methods import all_rows
from poet.training.spec import RunSpec

RESULTS = Path("results")
DATA = Path("data")


@dataclass(frozen=True, slots=True)
class Suite:
    """Everything that the rules read.

    Attributes:
        scale: see :class:`analyses.scale.Scale`.
        artifacts: by name, those that the scale has the models for.
        left_out: the others' names, with the models that they miss.
        runs: every distinct run by name.
    """

    scale: Scale
    artifacts: dict[str, Artifact]
    left_out: dict[str, list[str]]
    runs: dict[str, RunSpec]

    @property
    def dataset(self) -> Path:
        """Folder of the scale's prepared data."""
        return DATA / dataset_name(self.scale.data)

    def records(self, name: str) -> list[Path]:
        """The records that an artifact reads."""
        return [RESULTS / "runs" / spec.name / "record.json" for spec in self.artifacts[name].runs(self.scale)]

    def sources(self, name: str) -> list[Path]:
        """The outputs of other artifacts that an artifact is built from."""
        plain = [other for other, a in self.artifacts.items() if a.in_all and not a.reads]
        names = [n for read in self.artifacts[name].reads for n in (plain if read == EVERY else [read])]
        return [RESULTS / output for other in names for output in self.artifacts[other].outputs]

    def digests(self, name: str) -> list[str]:
        """Digests of the specs that an artifact reads: it is remade when one changes."""
        return [spec.digest for spec in self.artifacts[name].runs(self.scale)]

    def pattern(self, model: str) -> str:
        """A regular expression for the names of a model's runs that have a process each; one that matches nothing if there
        are none."""
        alone = self.scale.resources(model)["runs_per_job"] == 1
        names = (name for name, spec in self.runs.items() if spec.model == model and alone)
        return "|".join(map(re.escape, names)) or "(?!)"

    def resources(self, model: str) -> dict[str, int | str]:
        """What a training job of a model asks for, by the names of Snakemake and its Slurm executor."""
        given = self.scale.resources(model)
        asked = {"gpu": given["gpus"], "mem_mb": given["mem_mb"], "runtime": given["runtime"]}
        # Read by the job itself. They are no params: a finished run is not trained again because they change.
        asked |= {"processes": given["processes"], "shard_optimizer": int(given["shard_optimizer"])}
        if given["partition"]:
            asked["slurm_partition"] = given["partition"]
        if given["nodes"] > 1:  # one task a node, which the launcher starts itself; "tasks" alone would count tasks a GPU
            asked |= {"nodes": given["nodes"], "tasks": given["nodes"], "tasks_per_gpu": 0, "mpi": "srun"}
        return asked

    def crowded(self, gpus: int) -> list[str]:
        """A sentence for each model whose runs ask for more GPUs than a machine has."""
        asked = ((model, self.scale.resources(model)["gpus"]) for model in self.scale.models)
        return [
            f"note: runs of {model} ask for {wanted} GPUs and this machine shows {gpus}: they take {gpus}, each more micro-batches"
            for model, wanted in asked
            if wanted > gpus
        ]

    def training_code(self, names: Iterable[str]) -> list[str]:
        """Digests of what the numbers of these runs depend on beside their specs: where one changes, Snakemake trains again.

        None where the scale says that finished runs are kept all the same: their records say which commit made them.
        """
        if not self.scale.settings.get("retrain", True):
            return []
        specs = (self.runs[name] for name in names)
        pairs = {(spec.method, "cuda" if self.scale.resources(spec.model)["gpus"] else "cpu") for spec in specs}
        return [data_digest(), *sorted(training_digest(method, device) for method, device in pairs)]

    def shared_jobs(self, model: str) -> list[list[str]]:
        """The names of a model's runs by the process that they share; nothing where each has its own."""
        names = sorted(name for name, spec in self.runs.items() if spec.model == model)
        size = self.scale.resources(model)["runs_per_job"]
        return [names[i : i + size] for i in range(0, len(names), size)] if size > 1 else []

    def check_targets(self, targets: Iterable[str]) -> None:
        """Refuse a target in ``results/`` that this scale cannot make, and say why.

        Raises:
            ConfigError: as above.
        """
        for target in targets:
            artifact = Path(str(target)).name.partition(".")[0]
            if str(target).startswith(f"{RESULTS}/") and artifact in self.left_out:
                missing, models = ", ".join(self.left_out[artifact]), ", ".join(self.scale.models)
                raise ConfigError(f"{artifact} needs model {missing}; scale {self.scale.name} has {models}: choose another scale")
            name = str(target).removeprefix(f"{RESULTS}/runs/").rpartition("/")[0]
            if str(target).startswith(f"{RESULTS}/runs/") and name not in self.runs:
                models = ", ".join(self.scale.models)
                raise ConfigError(
                    f"there is no run {name!r} at scale {self.scale.name} with seeds {list(self.scale.seeds)}; "
                    f"models are {models}; methods are {', '.join(all_rows())}"
                )

    def check_writable(self) -> None:
        """Refuse to begin what could not be kept.

        Raises:
            ConfigError: nothing can be written into the results folder.
        """
        try:
            with tempfile.TemporaryFile(dir=RESULTS if RESULTS.exists() else "."):
                pass
        except OSError as error:
            raise ConfigError(f"nothing can be written to {RESULTS.absolute()} ({error.strerror}): make it writable, or free space") from None

    def default_targets(self) -> list[Path]:
        """What ``snakemake all`` makes."""
        return [RESULTS / output for a in self.artifacts.values() if a.in_all for output in a.outputs]


def artifact_sources(name: str) -> str:
    """Digest of the source files that an artifact depends on: its own, and whatever is no other artifact's one file.

    One that is built from others depends on their files too: their claims stand there. Nothing depends on the folder of such
    a one, and templates, styles and scripts belong to the artifact in whose folder they lie.
    """
    folder, found = ROOT / "analyses", discover()
    single = set() if found[name].reads else {folder / f"{other}.py" for other in found if other != name}
    apart = [folder / other for other, artifact in found.items() if artifact.reads and other != name]
    apart += [folder / "plan", folder / "status.py", folder / "submission.py"]  # which make no artifact
    code = (p for p in folder.rglob("*.py") if p not in single and not any(p.is_relative_to(other) for other in apart))
    assets = (p for p in (folder / name).rglob("*") if p.suffix in (".html", ".css", ".js"))
    published = (folder / "published").glob("*.csv")
    # Tables count parameters at paper scale, whichever scale they are made at.
    return digest([*code, *assets, *published, ROOT / "config" / "scales" / "paper.yaml"])


def load_suite(config: dict[str, Any]) -> Suite:
    """The suite for a configuration.

    Raises:
        ConfigError: in one sentence, for anything that the user wrote wrong.
    """
    scale = load_scale(config)
    found = discover()
    missing = {name: [m for m in a.models if m not in scale.models] for name, a in found.items()}
    left_out = {name: models for name, models in missing.items() if models}
    artifacts = {name: artifact for name, artifact in found.items() if name not in left_out}
    try:
        return Suite(scale, artifacts, left_out, collect_runs(artifacts, scale))
    except ValueError as error:
        raise ConfigError(f"scale {scale.name}: {error}") from None
