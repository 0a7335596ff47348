"""RunSpec: everything that determines a run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from poet.system.validation import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A LLaMA decoder.

    Attributes:
        hidden_size, intermediate_size, layers, heads: as in Table 8.
        vocabulary: size of the vocabulary.
        sequence_length: tokens a row.
    """

    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    vocabulary: int
    sequence_length: int

    def __post_init__(self) -> None:
        if self.hidden_size % self.heads or (self.hidden_size // self.heads) % 2:
            raise ValueError(f"{self.heads} heads need a hidden size that splits into even parts, not {self.hidden_size}")

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of a block's linear layers. The four of self_attn have one shape; gate_proj has that of up_proj."""
        hidden, inner = self.hidden_size, self.intermediate_size
        return {"self_attn": (hidden, hidden), "mlp.up_proj": (hidden, inner), "mlp.down_proj": (inner, hidden)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """The specification of a run: equal specs give equal results. Paths, threads and checkpoint intervals are not part of it.

    Attributes:
        scale, model, variant: the run's place in the grid. ``variant`` is the key of the row, followed by the parameters that
            differ from the row ("poet-fs-1_2", "poet-fs-1_2-merge_every=5").
        architecture: the decoder.
        method, parameters: key in ``poet.methods`` and all hyperparameters of that method.
        data: the description of the data set, see ``poet.data.prepare``.
        batch_rows: rows of one optimizer step, over all accumulation steps and devices.
        accumulation: micro-batches of a step, over all devices.
        steps: optimizer steps.
        weight_decay, clip_norm: AdamW's decoupled decay; gradient-norm threshold.
        minimum_lr_ratio, warmup_steps: of the cosine schedule.
        precision: "fp32", or "bf16" (autocast; parameters stay fp32).
        evaluate_every: steps between two evaluations of the history; the last step is always evaluated.
        evaluation_rows: validation rows of the history's evaluations (0: all).
        final_evaluation_rows: validation rows of the record's perplexity (0: all).
        seed: of initialization, batch order and the method's sampling, each derived by name.
        probes: names in ``poet.training.probes``, each with the steps after which it is taken, ascending; 0 is before
            training.
        keep_weights: keep the final model in the Hugging Face format.
    """

    scale: str
    model: str
    variant: str
    architecture: Architecture
    method: str
    parameters: dict[str, Any] = field(hash=False)
    data: dict[str, Any] = field(hash=False)
    batch_rows: int
    accumulation: int
    steps: int
    weight_decay: float
    clip_norm: float
    minimum_lr_ratio: float
    warmup_steps: int
    precision: str
    evaluate_every: int
    evaluation_rows: int
    final_evaluation_rows: int
    seed: int
    probes: dict[str, tuple[int, ...]] = field(hash=False, default_factory=dict)
    keep_weights: bool = False

    def __post_init__(self) -> None:
        if self.precision not in ("fp32", "bf16"):
            raise ValueError(f"precision is 'fp32' or 'bf16', got {self.precision!r}")
        for name in ("batch_rows", "accumulation", "steps", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more, got {getattr(self, name)}")
        if self.batch_rows % self.accumulation:
            raise ValueError(f"batch_rows={self.batch_rows} is not divisible by accumulation={self.accumulation}")
        for name, steps in self.probes.items():
            if list(steps) != sorted(set(steps)) or not steps or steps[0] < 0 or steps[-1] > self.steps:
                raise ValueError(f"probe {name} wants ascending steps between 0 and {self.steps}, got {list(steps)}")

    @property
    def name(self) -> str:
        """The run's folder below ``results/runs``."""
        return f"{self.scale}/{self.model}/{self.variant}/seed{self.seed}"

    @property
    def tokens(self) -> int:
        """Tokens of training, padding included."""
        return self.steps * self.batch_rows * self.architecture.sequence_length

    @property
    def digest(self) -> str:
        """sha256 of the whole spec: runs with equal digests are the same run."""
        return hashlib.sha256(json.dumps(_canonical(self.to_dict()), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The spec in plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunSpec:
        """The inverse of :meth:`to_dict`.

        Raises:
            ConfigError: a key is unknown or missing, or a value is of another type or out of its range.
        """
        return parse(cls, values, "run spec")


def _canonical(value: Any) -> Any:
    """Equal values as equal JSON: 1.0 equals 1, so both are written as 1."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
