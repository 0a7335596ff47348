"""The suite at a scale, computed once for the workflow: artifacts, runs and their inputs."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poet.data.corpora import CORPORA
from poet.data.errors import DataError
from poet.data.files import read_json
from poet.finetuning.sources import finetuning_digest, task_digest
from poet.finetuning.spec import FinetuningSpec
from poet.launch.sources import data_digest, data_sources, file_digests, training_digest
from poet.methods import METHODS
from poet.system.validation import ConfigError
from poet.training.spec import RunSpec
from suite.artifact import Artifact, names_read
from suite.discovery import discover
from suite.finetuning import TASKS_OF_TABLE4, bases, searched_data, task_folder
from suite.methods import check_methods
from suite.records import changed_code
from suite.summarization import BART
from suite.scale import Scale, dataset_name, load_scale
from suite.sources import read_note
from suite.tuning.cells import Tuning

RESULTS = Path("results")
DATA = Path("data")
Spec = RunSpec | FinetuningSpec


@dataclass(frozen=True, slots=True)
class Suite:
    """The artifacts and runs of a scale, which the rules of the workflow read.

    Attributes:
        scale: see :class:`suite.scale.Scale`.
        artifacts: by name, those whose models the scale has.
        left_out: the names of the other artifacts, each with the models that the scale lacks.
        asked: the specs of each artifact, by its name.
        runs: every distinct run that artifacts ask for, by name.
        trials: the trials that tuning has asked for so far, by name. Finished ones are also runs of the artifact ``lr_sweep``.
        finetunings: every distinct finetuning run that artifacts ask for, by name.
    """

    scale: Scale
    artifacts: dict[str, Artifact]
    left_out: dict[str, list[str]]
    asked: dict[str, list[Spec]]
    runs: dict[str, RunSpec]
    trials: dict[str, RunSpec]
    finetunings: dict[str, FinetuningSpec]

    @property
    def trainable(self) -> dict[str, RunSpec]:
        """Every pretraining run that artifacts or tuning ask for, by name."""
        return self.runs | self.trials

    @property
    def all_specs(self) -> dict[str, Spec]:
        """Every run and finetuning run that artifacts or tuning ask for, by name."""
        return self.trainable | self.finetunings

    @property
    def specs(self) -> dict[str, Spec]:
        """Every run and finetuning run that artifacts ask for, by name."""
        return self.runs | self.finetunings

    @property
    def in_all(self) -> list[str]:
        """Names of the artifacts that ``snakemake all`` makes."""
        return [name for name, artifact in self.artifacts.items() if artifact.in_all]

    @property
    def dataset(self) -> Path:
        """Folder of the scale's prepared data."""
        return DATA / dataset_name(self.scale.data)

    def records(self, name: str) -> list[Path]:
        """The records that an artifact reads."""
        return [RESULTS / "runs" / spec.name / "record.json" for spec in self.asked[name]]

    @property
    def folder(self) -> Path:
        """The folder of the scale's artifacts. ``RESULTS`` itself holds copies of the artifacts that were asked for last, at whatever scale."""
        return RESULTS / self.scale.name

    def outputs(self, name: str) -> list[Path]:
        """The files of an artifact at this scale."""
        return [self.folder / output for output in self.artifacts[name].outputs]

    def shown(self, name: str) -> list[Path]:
        """The copies of an artifact's files in ``RESULTS``."""
        return [RESULTS / output for output in self.artifacts[name].outputs]

    def sources(self, name: str) -> list[Path]:
        """The outputs of other artifacts that an artifact is built from."""
        return [output for other in names_read(self.artifacts[name], self.artifacts) for output in self.outputs(other)]

    def shown_beside(self, name: str) -> list[Path]:
        """The copies in ``RESULTS`` of the outputs that an artifact is built from: the report links to them."""
        return [path for other in names_read(self.artifacts[name], self.artifacts) for path in self.shown(other)]

    def digests(self, name: str) -> list[str]:
        """Digests of the specs that an artifact reads: it is remade when one changes."""
        return [spec.digest for spec in self.asked[name]]

    def pattern(self, model: str) -> str:
        """A regular expression for the names of a model's runs that have a job of their own; it matches nothing if there are none.

        A trial always has its own job: the set of trials grows while they run, and the runs of a shared job must not change."""
        alone = self.scale.resources(model)["runs_per_job"] == 1
        names = (name for name, spec in self.trainable.items() if spec.model == model and (alone or name in self.trials))
        return "|".join(map(re.escape, names)) or "(?!)"

    def resources(self, model: str) -> dict[str, int | str]:
        """The resources of a model's training jobs, by the names of Snakemake and its Slurm executor."""
        given = self.scale.resources(model)
        asked = {"gpu": given["gpus"], "mem_mb": given["mem_mb"], "runtime": given["runtime"]}
        # The job itself reads these. They are resources and not params, so that a change of them trains no finished run again.
        asked |= {"processes": given["processes"], "shard_optimizer": int(given["shard_optimizer"])}
        if given["nodes"] > 1:  # one task per node, which the launcher starts by srun; without "tasks_per_gpu", "tasks" would count per GPU
            asked |= {"nodes": given["nodes"], "tasks": given["nodes"], "tasks_per_gpu": 0, "mpi": "srun"}
        if given["nodes"] > 1 and given["gpus"]:  # the same number on each node: "gpu" gives Slurm only the total
            asked["gres"] = ":".join(("gpu", *filter(None, [given["gpu_model"]]), str(given["gpus"] // given["nodes"])))
        return asked | self._place(model)

    def _place(self, model: str) -> dict[str, str]:
        """The Slurm partition and GPU model of a model's jobs, where they are given."""
        given = self.scale.resources(model)
        wanted = {"slurm_partition": given["partition"], "gpu_model": given["gpus"] and given["gpu_model"]}
        return {name: value for name, value in wanted.items() if value}

    def finetuning_resources(self, model: str) -> dict[str, int | str]:
        """The resources of a finetuning job: one GPU at most, and that GPU's share of the node's memory."""
        given = self.scale.resources(model)
        asked = {"gpu": min(1, given["gpus"]), "mem_mb": given["mem_mb"] // self._node_gpus(model), "runtime": given["runtime"]}
        return asked | self._place(model)

    def finetuning_threads(self, model: str) -> int:
        """CPU cores of a finetuning job: one GPU's share of the node's."""
        return max(1, self.scale.resources(model)["threads"] // self._node_gpus(model))

    def _node_gpus(self, model: str) -> int:
        given = self.scale.resources(model)
        return max(1, given["gpus"] // given["nodes"])

    def untuned(self) -> str:
        """A note if the scale has a tuning protocol and no table of rates yet; else empty."""
        if not self.scale.settings.tuning or self.scale.rate_table.trials:
            return ""
        name = self.scale.name
        return f"note: scale {name} has no tuned learning rates: its runs take their methods' defaults; run make tune SCALE={name} and make record SCALE={name} first"

    def crowded(self, gpus: int) -> list[str]:
        """A sentence for each model whose runs ask for more GPUs than a machine has, or one for all if it has none."""
        if not gpus:
            models = [model for model in self.scale.models if self.scale.device(model) == "cuda"]
            remedy = "data can be prepared here, and no such run trained; choose another scale, or submit to a cluster"
            return [f"note: runs of {', '.join(models)} need a GPU and this machine shows none: {remedy}"] if models else []
        asked = ((model, self.scale.resources(model)["gpus"]) for model in self.scale.models)
        return [
            f"note: runs of {model} ask for {wanted} GPUs and this machine shows {gpus}: they take {gpus}, each more micro-batches"
            for model, wanted in asked
            if wanted > gpus
        ]

    def training_code(self, names: Iterable[str]) -> list[str]:
        """Digests of the training and data-preparation code of the given runs: Snakemake trains them again when one changes.

        Empty at a scale with ``retrain: false``, which keeps finished runs; their records name their commits.
        """
        if not self.scale.settings.retrain:
            return []
        specs = (self.trainable[name] for name in names)
        pairs = {(spec.method, self.scale.device(spec.model)) for spec in specs}
        return [data_digest(self.scale.data["corpus"]), *sorted(training_digest(method, device) for method, device in pairs)]

    @property
    def task_folders(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The folders of prepared tasks, which finetuning runs and searches of their rates read, each with its task and the description of its examples."""
        found = {str(self.examples(spec)): (spec.task, spec.data) for spec in self.finetunings.values() if spec.base}
        return found | {str(self.searched_task(task)): (task, searched_data(self.scale)) for task in TASKS_OF_TABLE4}

    def examples(self, spec: FinetuningSpec) -> Path:
        """The data folder of a finetuning run: that of its task or, if the run pretrains BART, that of the scale's rows."""
        return DATA / "tasks" / task_folder(spec.task, spec.data) if spec.base else self.dataset

    def searched_task(self, task: str) -> Path:
        """The data folder of a Table 4 task for the search of its learning rates."""
        return DATA / "tasks" / task_folder(task, searched_data(self.scale))

    def finetuning_searches(self) -> list[tuple[RunSpec, str]]:
        """The (pretrained run, task) of each job that searches learning rates of finetuning."""
        return list(itertools.product(bases(self.scale), TASKS_OF_TABLE4))

    def tuned_part(self, base: RunSpec, task: str) -> Path:
        """The file that the search of a pretrained run's finetuning rates on a task writes."""
        return self.folder / "finetuning_rates" / f"{task}-{base.variant}.csv"

    def given_bart(self, spec: FinetuningSpec) -> bool:
        """Whether a run starts from a BART that was not pretrained here, and so reads none of the scale's rows."""
        return spec.model == BART and self.scale.settings.summarization.base is not None

    def finetuning_jobs(self) -> list[list[str]]:
        """The names of the finetuning runs in each job. The runs of a base are sorted by task, so that runs of one task share a job where they can."""
        settings, of_base = self.scale.settings, {}
        for name, spec in sorted(self.finetunings.items()):
            size = (settings.summarization if spec.model == BART else settings.finetuning).runs_per_job
            of_base.setdefault((spec.base, size), []).append(name)
        return [names[i : i + size] for (_, size), names in of_base.items() for i in range(0, len(names), size)]

    def finetuning_code(self, names: Iterable[str]) -> list[str]:
        """Digests of the code that the given finetuning runs depend on; see :meth:`training_code`."""
        if not self.scale.settings.retrain:
            return []
        specs = map(self.finetunings.get, names)
        return sorted({finetuning_digest(spec, self.scale.device(spec.model)) for spec in specs})

    def task_code(self) -> list[str]:
        """The digest of the code that prepares finetuning tasks; see :meth:`training_code`."""
        return [task_digest()] if self.scale.settings.retrain else []

    @property
    def text(self) -> dict[str, Any]:
        """The identity of the local text that the data are made from; empty if they are not. If the text is gone, what the prepared data say of it."""
        if (path := self.scale.data.get("path")) is None:
            return {}
        try:
            return CORPORA[self.scale.data["corpus"]](path).identity()
        except DataError:  # rows that were made from it are still good, and Snakemake would delete them first
            return (read_json(self.dataset / "meta.json") or {}).get("corpus", {})

    @property
    def data_changed(self) -> bool:
        """Whether the prepared data come from other code or another text than today's, so that every run is trained again."""
        note, meta = read_note(self.dataset / "sources.json"), read_json(self.dataset / "meta.json")
        code = note is not None and note["files"] != file_digests(data_sources(self.scale.data["corpus"]))
        return self.scale.settings.retrain and (code or (meta is not None and not self.text.items() <= meta["corpus"].items()))

    def is_current(self) -> Callable[[Spec, dict[str, Any]], bool]:
        """A function that says, from a finished run's spec and record, whether its code and data are today's."""
        if not self.scale.settings.retrain:
            return lambda spec, record: True
        data_changed = self.data_changed
        return lambda spec, record: not (data_changed or changed_code(spec, record, self.scale.device(spec.model)))

    def shared_jobs(self, model: str) -> list[list[str]]:
        """The names of a model's runs in each shared job; empty if every run has its own."""
        names = sorted(name for name, spec in self.runs.items() if spec.model == model and name not in self.trials)
        size = self.scale.resources(model)["runs_per_job"]
        return [names[i : i + size] for i in range(0, len(names), size)] if size > 1 else []

    def check_models(self, artifact: str) -> None:
        """Refuse an artifact that the scale lacks models for.

        Raises:
            ConfigError: the message names the missing models.
        """
        if artifact in self.left_out:
            missing, models = ", ".join(self.left_out[artifact]), ", ".join(self.scale.models)
            raise ConfigError(f"{artifact} needs model {missing}; scale {self.scale.name} has {models}: choose another scale")

    def default_targets(self) -> list[Path]:
        """The files that ``snakemake all`` makes."""
        return [path for name in self.in_all for path in self.shown(name)]


def distinct(asked: dict[str, list[Spec]]) -> dict[str, Spec]:
    """Every distinct run, by its own name, of those that artifacts ask for, by theirs: each is trained once.

    Raises:
        ValueError: two artifacts use one name for different specs.
    """
    grid: dict[str, Spec] = {}
    for name, specs in asked.items():
        for spec in specs:
            if (known := grid.setdefault(spec.name, spec)) != spec:
                fields = [f.name for f in dataclasses.fields(spec) if getattr(spec, f.name) != getattr(known, f.name)]
                raise ValueError(
                    f"artifact {name}: run {spec.name} stands for two different specs, which differ in {', '.join(fields)}: "
                    "make them the same (probes: after the same steps), or different in number"
                )
    return grid


def _models_behind(artifact: Artifact, found: dict[str, Artifact]) -> list[str]:
    """The models of the artifacts that an artifact names in ``reads``, directly or indirectly: it needs them, too."""
    behind = [found[name] for name in artifact.reads if name in found]
    return [model for one in behind for model in (*one.models, *_models_behind(one, found))]


def load_suite(config: dict[str, Any]) -> Suite:
    """The suite for a configuration.

    Raises:
        ConfigError: the configuration, a scale file, a method or an artifact is wrong.
    """
    check_methods(METHODS)
    scale = load_scale(config)
    found = discover()
    left_out = {name: models for name, artifact in found.items() if (models := artifact.missing(scale, *_models_behind(artifact, found)))}
    artifacts = {name: artifact for name, artifact in found.items() if name not in left_out}
    try:
        tuning = Tuning(scale, RESULTS)
        trials = {spec.name: spec for spec in (*tuning.trials(), *tuning.trials(waiting=True))}
        asked = {name: artifact.specs(scale) for name, artifact in artifacts.items()}
        specs = distinct(asked)
        runs = {name: spec for name, spec in specs.items() if isinstance(spec, RunSpec)}
        finetunings = {name: spec for name, spec in specs.items() if isinstance(spec, FinetuningSpec)}
        return Suite(scale, artifacts, left_out, asked, runs, trials, finetunings)
    except ValueError as error:
        raise ConfigError(f"scale {scale.name}: {error}") from None
