"""The schemas of ``config/config.yaml`` and ``config/scales/*.yaml``; ``python -m suite.settings`` writes them for editors."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from typing_extensions import TypeAliasType

from poet.data.description import Description
from poet.methods import METHODS, all_rows
from poet.methods.contract import parse_parameters
from poet.system.validation import ConfigError, Settings, json_schema, parse
from suite.tuning.protocol import Protocol, check_known

SCHEMAS = Path(__file__).resolve().parents[1] / "workflow" / "schemas"


def _different(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"a seed stands twice in {seeds}: name each once")
    return seeds


def _parameters(methods: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    check_known("method", methods, METHODS)
    for name, parameters in methods.items():
        parse_parameters(METHODS[name], parameters)
    return methods


def _schemas_of_methods(schema: dict[str, Any]) -> None:
    own = {name: json_schema(method.Parameters) for name, method in METHODS.items()}
    schema |= {"properties": own, "additionalProperties": False}


#: Parameters by the name of their method.
Methods = TypeAliasType("Methods", Annotated[dict[str, dict[str, Any]], AfterValidator(_parameters), Field(json_schema_extra=_schemas_of_methods)])


class Config(Settings):
    scale: str
    """the name of a file in config/scales"""
    seeds: Annotated[list[NonNegativeInt], AfterValidator(_different)] = Field(min_length=1, examples=[[0, 1, 2]])
    """one run of everything per seed: a list of different whole numbers, 0 or more"""
    resume: Literal["recorded"] | None = None
    """recorded: restore runs from analyses/recorded/<scale>/runs.parquet where spec, code and data are as they were"""


def read_seeds(text: str) -> list[int]:
    """The seeds that a command line gives as a JSON list.

    Raises:
        ConfigError: the text is no list of different whole numbers, 0 or more.
    """
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        raise ConfigError(f"seeds: {text!r} is no list of whole numbers, such as [0,1,2]") from None
    return parse(Config, {"scale": "any", "seeds": given}, "config").seeds


class Resources(Settings):
    """Where and how fast a run is trained; they never say what comes out of it."""

    threads: PositiveInt
    """CPU cores of a run, on each of its nodes"""
    gpus: NonNegativeInt
    """of a run, over all its nodes; each trains a part of every batch"""
    mem_mb: PositiveInt
    """memory of a run, on each of its nodes"""
    runtime: PositiveInt
    """time limit of a job, in minutes; a longer run goes on in the next attempt"""
    nodes: PositiveInt = 1
    """that a run is spread over, in a Slurm job"""
    processes: PositiveInt = 1
    """that share a run where there is no GPU"""
    shard_optimizer: bool = False
    """AdamW's moments are divided among a run's processes"""
    partition: str | None = None
    """of Slurm; the profile's if it is not given"""
    gpu_model: str | None = None
    """of Slurm, where a cluster has several kinds of GPU"""
    runs_per_job: PositiveInt = 1
    """how many runs of a model share a process"""

    @model_validator(mode="after")
    def _exclude(self) -> Resources:
        for key in ("processes", "runs_per_job"):
            if self.gpus and getattr(self, key) > 1:
                raise ValueError(f"{key} is for runs without a GPU: leave it out, or set gpus to 0")
        if self.gpus % self.nodes:
            raise ValueError(f"{self.nodes} nodes cannot share {self.gpus} gpus evenly: make gpus a multiple of nodes")
        return self


def _schema_of_changes(schema: dict[str, Any]) -> None:
    schema |= {"properties": json_schema(Resources)["properties"], "additionalProperties": False}


class FeedForward(Settings):
    standard: PositiveInt
    divisible: PositiveInt
    """for rows that the paper trains with the d_ff that block sizes divide"""


class Model(Settings):
    hidden_size: PositiveInt
    intermediate_size: FeedForward
    layers: PositiveInt
    heads: PositiveInt
    steps: PositiveInt
    batch_rows: PositiveInt
    """rows of one optimizer step, over all accumulation steps and devices"""
    accumulation: PositiveInt
    """micro-batches of a step, over all devices"""
    methods: Methods = {}
    """method: its parameters on this model, in the paper's units"""
    resources: dict[str, Any] = Field({}, json_schema_extra=_schema_of_changes)
    """what this model's runs ask for in place of the scale's resources"""


class Training(Settings):
    weight_decay: NonNegativeFloat
    clip_norm: PositiveFloat
    minimum_lr_ratio: float = Field(ge=0, le=1)
    warmup_steps: NonNegativeInt
    precision: Literal["fp32", "bf16"]
    evaluate_every: PositiveInt
    """steps"""
    evaluation_rows: NonNegativeInt
    """of the history's evaluations; 0: all"""
    final_evaluation_rows: NonNegativeInt
    """of the record's perplexity; 0: all"""


class LearningRates(Settings):
    table: str
    """a file in the format of results/lr_sweep.csv"""
    borrow: dict[str, str] = {}
    """a model that was not swept: the model whose rates it takes"""


def _length(given: str | int) -> Fraction:
    try:
        length = Fraction(given)
    except (ValueError, ZeroDivisionError):
        length = Fraction(0)
    if length <= 0:
        raise ValueError(f"{given!r} is no share of a model's steps, such as 1/10")
    return length


class Tuned(Settings):
    model: str
    lengths: list[Annotated[str | int, AfterValidator(_length)]] = Field(min_length=1, examples=[["1/10", 1]])
    """shares of the model's steps that have rates of their own"""
    rows: Annotated[list[str], Field(min_length=1)] | None = None
    """table rows; every row if it is not given"""
    seeds: list[NonNegativeInt] = []
    """seeds that these rungs of the horizon ladder have for a second look, beside those that are asked for"""


class OnTasks(Settings):
    """How a pretrained model is finetuned on tasks."""

    source: str = Field(pattern=r"^(hub|offline|folder:.+)$")
    """hub: the real sets; folder:PATH: the same from a local folder; offline: what the package index and the default corpus give"""
    train: NonNegativeInt
    """examples of a task at most; 0: all"""
    validation: NonNegativeInt
    """examples of a task at most; 0: all"""
    seeds: PositiveInt
    """finetuning runs of each cell, from 0 on"""
    epochs: PositiveInt
    batch_rows: PositiveInt
    sequence_length: PositiveInt
    """tokens of a text at most"""
    clip_norm: PositiveFloat
    methods: Methods = {}
    """method: its parameters, in the scale's own units, except learning rates: all that is trained has one (R and P have ``poet_scale`` times it)"""
    runs_per_job: PositiveInt = 1
    """how many runs of a pretrained model share a process"""

    @model_validator(mode="after")
    def _one_rate(self) -> OnTasks:
        if idle := [f"{key} of {name}" for name, given in self.methods.items() for key in given if key in METHODS[name].learning_rates]:
            raise ValueError(f"{', '.join(idle)} would change nothing, since finetuning trains everything at one learning rate: take it out")
        return self


class Finetuning(OnTasks):
    """What Table 4 finetunes, and how."""

    model: str
    """whose pretrained runs are finetuned; they keep their weights"""
    rows: list[str] = Field(min_length=1)
    """table rows that pretrained it"""


class Infilling(Settings):
    """A small BART, pretrained on the scale's rows by text infilling; its texts have as many tokens as those that are summarized."""

    hidden_size: PositiveInt
    intermediate_size: PositiveInt
    layers: PositiveInt
    """of the encoder, and of the decoder"""
    heads: PositiveInt
    train: NonNegativeInt
    """texts at most; 0: all"""
    validation: NonNegativeInt
    """texts at most; 0: all"""
    epochs: PositiveInt
    batch_rows: PositiveInt
    lr: PositiveFloat
    """of AdamW; it falls linearly to zero"""
    clip_norm: PositiveFloat

    @model_validator(mode="after")
    def _check(self) -> Infilling:
        if self.hidden_size % self.heads:
            raise ValueError(f"{self.heads} heads need a hidden_size that they divide, not {self.hidden_size}")
        return self


class Summarization(OnTasks):
    """What Table 12 finetunes, and how."""

    base: str | None = None
    """a BART to start from: its name on the hub, or a local folder with its weights and tokenizer"""
    pretraining: Infilling | None = None
    """in the place of `base`: one that is pretrained here"""
    longest: PositiveInt | None = None
    """tokens of a written summary at most, where that is less than BART's authors have it"""

    @model_validator(mode="after")
    def _one(self) -> Summarization:
        if (self.base is None) == (self.pretraining is None):
            raise ValueError("give one of `base` (a BART of the hub or of a local folder) and `pretraining` (one that is pretrained here)")
        return self


class ScaleFile(Settings):
    width_divisor: PositiveInt
    """what the paper's block sizes and ranks are divided by"""
    vocabulary: PositiveInt
    data: Description
    models: dict[str, Model] = Field(min_length=1)
    """by name, smallest first"""
    training: Training
    methods: Methods = {}
    """method: its parameters at this scale, in the scale's own units"""
    learning_rates: LearningRates
    finetuning: Finetuning
    summarization: Summarization
    tuning: list[Tuned] = []
    """what is tuned, by the protocol in config/tuning.yaml"""
    retrain: bool = True
    """whether finished runs are trained again when code or pinned versions change"""
    resources: Resources

    @model_validator(mode="after")
    def _check(self) -> ScaleFile:
        for part in self.tuning:
            check_known("model", [part.model], self.models, "tuning: ")
            check_known("row", part.rows or (), all_rows(), "tuning: ")
            if part.seeds and len({length for other in self.tuning if other.model == part.model for length in other.lengths}) < 2:
                raise ValueError(f"tuning: seeds: {part.model} has one length, and so no ladder: leave them out, or give it more lengths")
        check_known("model", [self.finetuning.model], self.models, "finetuning: ")
        check_known("row", self.finetuning.rows, all_rows(), "finetuning: ")
        if sorted(all_rows()[row][0].name for row in self.finetuning.rows) != ["adamw", "poet"]:
            raise ValueError(f"finetuning: rows are one of AdamW and one of POET, which Table 4 compares, and not {', '.join(self.finetuning.rows)}")
        for pair in self.learning_rates.borrow.items():
            check_known("model", pair, self.models, "learning_rates.borrow: ")
        for model in self.models:
            self.resources_of(model)
        return self

    def resources_of(self, model: str) -> Resources:
        """The scale's resources with the model's changes. Table 12's BART is not among the scale's models, and has no changes."""
        changes = self.models[model].resources if model in self.models else {}
        given = {**self.resources.model_dump(exclude_unset=True), **changes}
        return parse(Resources, given, f"resources of {model}")


FILES = {"config.schema.json": Config, "scale.schema.json": ScaleFile, "tuning.schema.json": Protocol}


def schema(name: str) -> str:
    """The text of a file in ``workflow/schemas``."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(draft | json_schema(FILES[name]), indent=1) + "\n"


if __name__ == "__main__":
    for name in FILES:
        (SCHEMAS / name).write_text(schema(name))
