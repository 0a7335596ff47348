"""FinetuningSpec: everything that determines a finetuning run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from poet.system.validation import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuningSpec:
    """A finetuning run, whole: equal specs give equal results.

    Attributes:
        scale, model: where it stands in the grid; ``model`` is the pretrained run's.
        base: name of the pretrained run whose weights it starts from.
        base_digest: of that run's spec.
        task: key in ``poet.finetuning.tasks.TASKS``.
        data: what ``poet.finetuning.examples.prepare_task`` is given.
        method: key in ``poet.finetuning.methods.FINETUNERS``.
        parameters: hyperparameters of the training method behind it, learning rates left out.
        lr: the one learning rate of everything that is trained, as in Section 5.2.
        epochs: passes over the training examples.
        batch_rows: examples of one optimizer step.
        sequence_length: tokens of an example at most; longer texts are cut.
        weight_decay, clip_norm: AdamW's decoupled decay; gradient-norm threshold.
        precision: "fp32", or "bf16" (autocast; parameters stay fp32).
        seed: of the new head, batch order, dropout and the method's sampling, each derived by name.
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

    @property
    def name(self) -> str:
        """The run's folder below ``results/runs``."""
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
