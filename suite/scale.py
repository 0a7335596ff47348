"""A scale: what a model name, a token budget and a method's row mean on a given machine.

``config/scales/<name>.yaml`` says it, ``workflow/schemas/scale.schema.json`` checks it, and :meth:`Scale.run` turns a
(model, row, seed) into a :class:`RunSpec`. Nothing else in the suite depends on the scale.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from poet.data.description import check_description
from poet.system.errors import UserError
from poet.methods import METHODS, all_rows
from poet.methods.contract import parse_parameters, scale_parameters
from poet.training.probes import get_probe
from poet.training.spec import Architecture, RunSpec

ROOT = Path(__file__).resolve().parents[1]


class ConfigError(UserError):
    """A key or a value of the configuration is wrong."""


def _validate(values: Any, schema: str, where: str) -> None:
    """Check against a JSON schema; the first error as one sentence that names the key and what it may be."""
    rules = json.loads((ROOT / "workflow" / "schemas" / schema).read_text())
    errors = sorted(jsonschema.Draft202012Validator(rules).iter_errors(values), key=lambda e: list(map(str, e.path)))
    if not errors:
        return
    error = errors[0]
    place = ": ".join([where, *([".".join(map(str, error.path))] if error.path else [])])
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        unknown = next(key for key in error.instance if key not in known)
        raise ConfigError(f"{place}: unknown key {unknown!r}; known are {', '.join(known)}")
    raise ConfigError(f"{place}: {error.message} (see workflow/schemas/{schema})")


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale with the seeds asked for.

    Attributes:
        name: smoke, mini, gpu, paper, or another file in ``config/scales``.
        seeds: seeds of every run.
        settings: the validated YAML file.
        learning_rates: {(model, row key): {learning rate's name: value}}, swept or published.
    """

    name: str
    seeds: tuple[int, ...]
    settings: dict[str, Any]
    learning_rates: dict[tuple[str, str], dict[str, float]]

    @property
    def models(self) -> tuple[str, ...]:
        """Model names, smallest first."""
        return tuple(self.settings["models"])

    def resources(self, model: str) -> dict[str, Any]:
        """What a run of a model asks of the machine: the scale's ``resources`` with what the model changes in them.

        They say where and how fast a run is trained, and never what comes out of it.
        """
        defaults = {"nodes": 1, "processes": 1, "shard_optimizer": False, "partition": None, "runs_per_job": 1}
        return {**defaults, **self.settings["resources"], **self.settings["models"][model].get("resources", {})}

    @property
    def data(self) -> dict[str, Any]:
        """What ``poet.data.prepare`` is given."""
        return self.settings["data"]

    @property
    def corpus(self) -> str:
        """The corpus, called a stand-in where it is not the paper's."""
        name = self.data["corpus"]
        return "C4" if name == "c4" else f"{name} (stand-in for C4)"

    def learning_rate_source(self, model: str, row: str) -> str:
        """Where the learning rates of a row on a model come from: the table, the model it was swept on, or defaults."""
        source = self._swept_model(model, row)
        if (source, row) not in self.learning_rates:
            return "the method's defaults"
        return f"{self.settings['learning_rates']['table']} ({source})"

    def _swept_model(self, model: str, row: str) -> str:
        """The model whose rates a row takes: its own if they were swept, else the one that the scale borrows from."""
        own = (model, row) in self.learning_rates
        return model if own else self.settings["learning_rates"].get("borrow", {}).get(model, model)

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
            seed: the run's seed.
            overrides: method parameters in the scale's own units that differ from the row's; they are spelled out
                in the run's name where they differ from what is in force.
            spell_all: spell out every override, so that names do not change with what is in force (sweeps).
            steps: optimizer steps, if not the model's.
            probes: what to measure, and after which steps; see ``poet.training.probes``.

        Raises:
            ConfigError: the scale has no such model.
            ValueError: no such row, or parameters that the method refuses.
        """
        if model not in self.settings["models"]:
            raise ConfigError(f"scale {self.name} has no model {model!r}; it has {', '.join(self.models)}")
        rows = all_rows()
        if row not in rows:
            raise ValueError(f"no row {row!r}; there are {', '.join(rows)}")
        method, definition = rows[row]
        m, training = self.settings["models"][model], self.settings["training"]
        published = {**m.get("methods", {}).get(method.name, {}), **definition.parameters}
        parameters = scale_parameters(method, published, self.settings["width_divisor"])
        parameters |= self.settings.get("methods", {}).get(method.name, {})
        parameters |= self.learning_rates.get((self._swept_model(model, row), row), {})
        overrides = overrides or {}
        differing = {name: value for name, value in overrides.items() if spell_all or parameters.get(name) != value}
        parameters |= overrides
        parse_parameters(method, parameters)  # a wrong name or value is refused now, not when the run starts
        probes = {name: tuple(at) for name, at in sorted((probes or {}).items())}
        for name in probes:
            get_probe(name)
        steps = steps or m["steps"]
        if steps != m["steps"]:
            differing["steps"] = steps
        differing |= {name: len(at) for name, at in probes.items()}
        variant = "-".join([row, *(f"{name}={_short(value)}" for name, value in differing.items())])
        return RunSpec(
            scale=self.name,
            model=model,
            variant=variant,
            architecture=Architecture(
                hidden_size=m["hidden_size"],
                intermediate_size=m["intermediate_size"][definition.ffn],
                layers=m["layers"],
                heads=m["heads"],
                vocabulary=self.settings["vocabulary"],
                sequence_length=self.data["sequence_length"],
            ),
            method=method.name,
            parameters=parameters,
            data=self.data,
            batch_rows=m["batch_rows"],
            accumulation=m["accumulation"],
            steps=steps,
            seed=seed,
            probes=probes,
            **training,
        )


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def dataset_name(data: dict[str, Any]) -> str:
    """Folder of a prepared data set: readable, and distinct for distinct settings."""
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]
    return f"{data['corpus']}-{data['sequence_length']}-{digest}"


def _read_learning_rates(path: Path) -> dict[tuple[str, str], dict[str, float]]:
    """The chosen rows of a learning-rate table (``results/lr_sweep.csv``'s format).

    Raises:
        ConfigError: a column is missing, a row unknown, or a rate not a number.
    """
    rows, rates = all_rows(), {}
    with open(path, newline="") as file:
        for line, entry in enumerate(csv.DictReader(file), start=2):
            try:
                if entry["chosen"] == "yes":
                    names = rows[entry["variant"]][0].learning_rates
                    rates[entry["model"], entry["variant"]] = {n: float(entry[n]) for n in names if entry[n]}
            except (KeyError, ValueError) as error:
                raise ConfigError(f"{path.relative_to(ROOT)}, line {line}: cannot read {error}") from None
    return rates


def _check_names(settings: dict[str, Any], where: str) -> None:
    """Names in a scale file that point to models, methods and rows: each has to exist."""
    models, grids = settings["models"], settings.get("sweep", {}).get("grids", {})
    rows = all_rows()
    borrow = settings["learning_rates"].get("borrow", {})
    mentions = [
        *((f"models.{m}.methods", name, METHODS) for m, values in models.items() for name in values.get("methods", {})),
        *(("methods", name, METHODS) for name in settings.get("methods", {})),
        *(("sweep.grids", name, {**rows, **{method.name: method for method, _ in rows.values()}}) for grid in grids.values() for name in grid),
        *(("sweep.grids", name, models) for name in grids),
        *(("learning_rates.borrow", name, models) for pair in borrow.items() for name in pair),
    ]
    for key, name, known in mentions:
        if name not in known:
            kind = "model" if known is models else "method"
            raise ConfigError(f"{where}: {key}: unknown {kind} {name!r}; known are {', '.join(known)}")


def _check_resources(settings: dict[str, Any], where: str) -> None:
    """Keys of ``resources`` that exclude each other, for each model."""
    for model, values in settings["models"].items():
        asked = {**settings["resources"], **values.get("resources", {})}
        for key in ("processes", "runs_per_job"):
            if asked["gpus"] and asked.get(key, 1) > 1:
                raise ConfigError(f"{where}: resources of {model}: {key} is for runs without a GPU: leave it out, or set gpus to 0")


def load_scale(config: dict[str, Any]) -> Scale:
    """The scale that a configuration names.

    Args:
        config: ``config/config.yaml`` with what the command line changed in it.

    Raises:
        ConfigError: an unknown key, scale or seed list, in one sentence.
    """
    if isinstance(config.get("seeds"), list):  # Snakemake hands a list from the command line on as strings
        numbers = [int(s) if isinstance(s, str) and s.isascii() and s.isdigit() else s for s in config["seeds"]]
        config = {**config, "seeds": numbers}
    _validate(config, "config.schema.json", "config")
    path = ROOT / "config" / "scales" / f"{config['scale']}.yaml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml")))
        raise ConfigError(f"config: scale: there is no scale {config['scale']!r}; choose one of {known}")
    try:
        settings = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f", line {place.line + 1}" if place else ""
        raise ConfigError(f"{path.relative_to(ROOT)}{line}: not YAML ({getattr(error, 'problem', error)})") from None
    _validate(settings, "scale.schema.json", str(path.relative_to(ROOT)))
    check_description(settings["data"])
    _check_names(settings, str(path.relative_to(ROOT)))
    _check_resources(settings, str(path.relative_to(ROOT)))
    table = ROOT / settings["learning_rates"]["table"]
    if not table.exists():
        raise ConfigError(f"{path.relative_to(ROOT)}: learning_rates.table: there is no file {table.relative_to(ROOT)}")
    return Scale(config["scale"], tuple(config["seeds"]), settings, _read_learning_rates(table))
