"""FinetuningSpec: everything that determines a finetuning run, or the pretraining of the small BART that Table 12 starts from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from poet.system.validation import parse


#: The task of a run that pretrains; all others are keys in ``poet.finetuning.tasks.TASKS``.
INFILLING = "infilling"


@dataclass(frozen=True, slots=True, kw_only=True)
class BartArchitecture:
    """A small BART. Its vocabulary is the tokenizer's with a mask token, its positions are the run's ``sequence_length``.

    Attributes:
        hidden_size, intermediate_size, heads: of encoder and decoder.
        layers: of each of the two.
    """

    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How a summary is written.

    Attributes:
        beams: of the search.
        length_penalty: exponent of the length that a summary's log-probability is divided by.
        shortest, longest: tokens of a summary.
        no_repeat: no sequence of so many tokens comes twice.
    """

    beams: int
    length_penalty: float
    shortest: int
    longest: int
    no_repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuningSpec:
    """A run, whole: equal specs give equal results.

    Attributes:
        scale, model: where it stands in the grid; ``model`` is the pretrained run's.
        base: name of the pretrained run whose weights it starts from; empty for one that starts from nothing.
        base_digest: of that run's spec.
        task: key in ``poet.finetuning.tasks.TASKS``, or :data:`INFILLING`.
        data: what ``poet.finetuning.examples.prepare_task`` is given; of infilling, the description of the rows, and how many texts.
        method: key in ``poet.finetuning.methods.FINETUNERS``.
        parameters: hyperparameters of the training method behind it, learning rates left out.
        lr: the one learning rate of everything that is trained: for Table 4 as in Section 5.2; the paper states none for Table 12.
        epochs: passes over the training examples.
        batch_rows: examples of one optimizer step.
        sequence_length: tokens of an example at most; longer texts are cut.
        weight_decay, clip_norm: AdamW's decoupled decay; gradient-norm threshold.
        precision: "fp32", or "bf16" (autocast; parameters stay fp32).
        seed: of new weights, batch order, noise, dropout and the method's sampling, each derived by name.
        architecture: of a model that starts from nothing.
        decoding: of summaries.
    """

    scale: str
    model: str
    base: str
    base_digest: str
    task: str
    data: dict[str, Any] = field(hash=False)
    method: str
    parameters: dict[str, Any] = field(hash=False)
    lr: float
    epochs: int
    batch_rows: int
    sequence_length: int
    weight_decay: float
    clip_norm: float
    precision: str
    seed: int
    architecture: BartArchitecture | None = None
    decoding: Decoding | None = None

    @property
    def name(self) -> str:
        """The run's folder below ``results/runs``."""
        if not self.base:
            return f"{self.scale}/{self.model}/{self.task}/seed{self.seed}"
        base = "-".join(self.base.split("/")[1:])
        return f"{self.scale}/finetuned/{self.task}/{base}/{self.method}-lr={self.lr:g}/seed{self.seed}"

    @property
    def variant(self) -> str:
        """What is done to the base: task, base and method."""
        return "/".join(self.name.split("/")[2:-1])

    @property
    def digest(self) -> str:
        """sha256 of the whole spec: two runs are one if theirs are equal."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FinetuningSpec:
        """The inverse of :meth:`to_dict`.

        Raises:
            ConfigError: a key is unknown or missing, or a value is of another type or out of its range.
        """
        return parse(cls, values, "finetuning spec")
