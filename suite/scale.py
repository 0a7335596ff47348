"""A scale: what a model name, a token budget and a method's row mean on a given machine.

``config/scales/<name>.yaml`` defines it, :class:`suite.settings.ScaleFile` is the schema of that file, and :meth:`Scale.run`
turns a (model, row, seed) into a :class:`RunSpec`. Nothing else in the suite depends on the scale.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from suite.rates import RateTable, Trial, read_rates
from suite.settings import Config, ScaleFile
from suite.tuning.protocol import FILE as PROTOCOL
from suite.tuning.protocol import Protocol, load_protocol
from poet.launch.sources import ROOT
from poet.methods import all_rows
from poet.methods.contract import Method, parse_parameters, scale_parameters
from poet.system.validation import ConfigError, parse, read_yaml
from poet.training.probes import get_probe
from poet.training.spec import Architecture, RunSpec


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale with the seeds asked for.

    Attributes:
        name: smoke, mini, gpu, paper, or another file in ``config/scales``.
        seeds: seeds of every run.
        settings: the scale's file.
        rate_table: learning rates, tuned or published.
        protocol: how learning rates are tuned.
        models: model names, smallest first: all of the scale's file, or fewer (:meth:`only`).
    """

    name: str
    seeds: tuple[int, ...]
    settings: ScaleFile
    rate_table: RateTable
    protocol: Protocol
    models: tuple[str, ...]

    def only(self, models: Iterable[str]) -> "Scale":
        """The scale with some of its models: an artifact is built at these if the others lack runs."""
        return replace(self, models=tuple(models))

    @property
    def lacking(self) -> str:
        """A phrase on the models of the scale's file that are not among :attr:`models`; empty if there are none."""
        absent = [model for model in self.settings.models if model not in self.models]
        return f"without {' and '.join(absent)}, whose runs are not all recorded" if absent else ""

    def resources(self, model: str) -> dict[str, Any]:
        """The resources of a model's runs: the fields of :class:`suite.settings.Resources` by name."""
        return self.settings.resources_of(model).model_dump()

    def device(self, model: str) -> str:
        """Where a model's runs are trained: "cpu" or "cuda"."""
        return "cuda" if self.resources(model)["gpus"] else "cpu"

    @property
    def data(self) -> dict[str, Any]:
        """The description of the data for ``poet.data.prepare``: only the keys that the scale file has."""
        return self.settings.data.model_dump(exclude_unset=True)

    @property
    def corpus(self) -> str:
        """The corpus's name, with a note that it is a stand-in unless it is C4."""
        name = self.data["corpus"]
        return "C4" if name == "c4" else f"{name} (stand-in for C4)"

    def learning_rate_source(self, model: str, row: str) -> str:
        """Where the learning rates of a row on a model come from: a table and the model that was tuned, or the method's defaults."""
        chosen = self.tuned(model, row)
        return f"{self.settings.learning_rates.table} ({chosen.model})" if chosen else "the method's defaults"

    def learning_rates(self, model: str, row: str) -> dict[str, float]:
        """The learning rates of a row on a model: tuned on it, else borrowed from another model, else the method's defaults."""
        chosen = self.tuned(model, row)
        return chosen.rates if chosen else {}

    def tuned(self, model: str, row: str) -> Trial | None:
        """The chosen trial of a row on a model, or on the model that the scale borrows from; None if there is none."""
        sources = (model, self.settings.learning_rates.borrow.get(model, model))
        found = (self.rate_table.chosen(source, row, self.settings.models[source].steps) for source in sources)
        return next((chosen for chosen in found if chosen), None)

    def intervals(self, row: str) -> dict[str, int]:
        """Parameters of a row that are counted in steps, each with the least value in a shorter run; see ``config/tuning.yaml``."""
        return given_of(self.protocol.intervals, all_rows()[row][0])

    def run(
        self,
        model: str,
        row: str,
        seed: int,
        *,
        overrides: dict[str, Any] | None = None,
        spell_all: bool = False,
        steps: int | None = None,
        probes: dict[str, Iterable[int]] | None = None,
    ) -> RunSpec:
        """The run of a table row on a model.

        Args:
            model: a key of the scale's models.
            row: a key of ``poet.methods.all_rows()``.
            overrides: method parameters in the scale's own units, in place of the row's on this scale. The run's name
                has those that change a value.
            spell_all: put every override into the name, so that a sweep's names do not depend on the row's parameters.
            steps: optimizer steps, if not the model's.
            probes: what to measure, and after which steps; see ``poet.training.probes``.

        Raises:
            ConfigError: the scale has no such model, or the method refuses the parameters, or a layer's shape with them.
            ValueError: no such row.
        """
        if model not in self.settings.models:
            raise ConfigError(f"scale {self.name} has no model {model!r}; it has {', '.join(self.models)}")
        rows = all_rows()
        if row not in rows:
            raise ValueError(f"no row {row!r}; there are {', '.join(rows)}")
        method, definition = rows[row]
        m = self.settings.models[model]
        published = {**given_of(m.methods, method), **definition.parameters}
        parameters = scale_parameters(method, published, self.settings.width_divisor)
        parameters |= given_of(self.settings.methods, method)
        parameters |= self.learning_rates(model, row)
        overrides = overrides or {}
        differing = {name: value for name, value in overrides.items() if spell_all or parameters.get(name) != value}
        parameters |= overrides
        probes = {name: tuple(at) for name, at in sorted((probes or {}).items())}
        for name in probes:
            get_probe(name)
        steps = steps or m.steps
        if steps != m.steps:
            differing["steps"] = steps
        differing |= {name: len(at) for name, at in probes.items()}
        architecture = Architecture(
            **m.model_dump(include={"hidden_size", "layers", "heads"}),
            intermediate_size=getattr(m.intermediate_size, definition.ffn),
            vocabulary=self.settings.vocabulary,
            sequence_length=self.settings.data.sequence_length,
        )
        check_layers(f"{row} on model {model}", method, parameters, architecture)  # now, not when the run starts
        finetuned = model == self.settings.finetuning.model and row in self.settings.finetuning.rows
        variant = "-".join([row, *(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in differing.items())])
        return RunSpec(
            scale=self.name,
            model=model,
            variant=variant,
            architecture=architecture,
            method=method.name,
            parameters=parameters,
            data=self.data,
            **m.model_dump(include={"batch_rows", "accumulation"}),
            steps=steps,
            seed=seed,
            probes=probes,
            keep_weights=finetuned and not differing,
            **self.settings.training.model_dump(),
        )


def check_layers(what: str, method: type[Method], parameters: dict[str, Any], architecture: Architecture) -> None:
    """Refuse parameters that a method does not take, or that do not fit a layer of the model.

    Raises:
        ConfigError: the sentence names ``what`` and the layer.
    """
    parsed = parse_parameters(method, parameters)
    for layer, shape in architecture.shapes.items():
        try:
            method.check_layer(parsed, *shape)
        except ValueError as error:
            raise ConfigError(f"{what}: layer {layer}: {error}") from None


def given_of(methods: dict[str, dict[str, Any]], method: type[Method]) -> dict[str, Any]:
    """The parameters that a scale file gives a method, including those of the method classes that it extends."""
    names = [base.__dict__.get("name") for base in reversed(method.__mro__)]
    return {key: value for name in names for key, value in methods.get(name, {}).items()}


def dataset_name(data: dict[str, Any]) -> str:
    """Folder of a prepared data set: readable, and distinct for distinct settings."""
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]
    return f"{data['corpus']}-{data['sequence_length']}-{digest}"


def load_scale(config: dict[str, Any]) -> Scale:
    """The scale that a configuration names: ``config/config.yaml`` with what the command line changed in it.

    Raises:
        ConfigError: an unknown key, scale or seed list, in one sentence.
    """
    if isinstance(config.get("seeds"), list):  # Snakemake hands a list from the command line on as strings
        config = {**config, "seeds": [int(s) if re.fullmatch(r"-?[0-9]+", str(s)) else s for s in config["seeds"]]}
    asked = parse(Config, config, "config")
    path = ROOT / "config" / "scales" / f"{asked.scale}.yaml"
    where = str(path.relative_to(ROOT))
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml")))
        raise ConfigError(f"config: scale: there is no scale {asked.scale!r}; choose one of {known}")
    settings = parse(ScaleFile, read_yaml(path, where), where)
    table, protocol = ROOT / settings.learning_rates.table, load_protocol(ROOT)
    given = {"config: seeds": asked.seeds if settings.tuning else [], f"{where}: tuning: seeds": [seed for part in settings.tuning for seed in part.seeds]}
    for place, seeds in given.items():
        if protocol.seed in seeds:
            raise ConfigError(f"{place}: {protocol.seed} is the seed of tuning ({PROTOCOL}): tables take others, such as [0, 1, 2]")
    if not table.exists() and not settings.tuning:  # a scale with tuning may have no table yet
        raise ConfigError(f"{where}: learning_rates.table: there is no file {settings.learning_rates.table}")
    return Scale(asked.scale, tuple(asked.seeds), settings, read_rates(table, ROOT) if table.exists() else RateTable(), protocol, tuple(settings.models))
