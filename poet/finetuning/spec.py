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
    """A small BART. Its vocabulary is the tokenizer's and a mask token; it has ``sequence_length`` positions, as the run.

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
        no_repeat: length of the token sequences that may not occur twice.
    """

    beams: int
    length_penalty: float
    shortest: int
    longest: int
    no_repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuningSpec:
    """The specification of a finetuning run: equal specs give equal results.

    Attributes:
        scale, model: the run's place in the grid; ``model`` is the pretrained run's.
        base: name of the pretrained run whose weights it starts from; empty for a run that starts from random weights.
        base_digest: digest of the pretrained run's spec.
        task: key in ``poet.finetuning.tasks.TASKS``, or :data:`INFILLING`.
        data: ``data`` of ``poet.finetuning.examples.prepare_task``; for infilling, the description of the rows and the numbers of texts.
        method: key in ``poet.finetuning.methods.FINETUNERS``.
        parameters: hyperparameters of the training method behind it, learning rates left out.
        lr: one learning rate for everything that is trained (for R and P times ``poet_scale``), as in Section 5.2 for Table 4; the paper states none for Table 12.
        epochs: passes over the training examples.
        batch_rows: examples of one optimizer step.
        sequence_length: tokens of an example at most; longer texts are cut.
        weight_decay, clip_norm: AdamW's decoupled decay; gradient-norm threshold.
        precision: "fp32", or "bf16" (autocast; parameters stay fp32).
        seed: of new weights, batch order, noise, dropout and the method's sampling, each derived by name.
        architecture: of a model that starts from random weights.
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
        """Task, base and method with its learning rate, joined by slashes; the task alone for a run without base."""
        return "/".join(self.name.split("/")[2:-1])

    @property
    def digest(self) -> str:
        """sha256 of the whole spec: runs with equal digests are the same run."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The spec in plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FinetuningSpec:
        """The inverse of :meth:`to_dict`.

        Raises:
            ConfigError: a key is unknown or missing, or a value is of another type or out of its range.
        """
        return parse(cls, values, "finetuning spec")
