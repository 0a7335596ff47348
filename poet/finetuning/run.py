"""The state of one finetuning run: model, method, optimizers, progress, and one step of it."""

from __future__ import annotations

import contextlib
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from poet.data.rows import read_meta
from poet.data.tokenizer import load_prepared
from poet.finetuning.examples import Batch, Examples
from poet.finetuning.methods import count_body, finetuned
from poet.finetuning.metrics import METRICS, without_learning
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from poet.training.errors import RunError
from poet.training.seeds import derive

#: Validation examples of one forward pass.
EVALUATION_ROWS = 128


class FinetuningRun:
    """One finetuning run in memory: a classifier, or a regression on a score, on top of a pretrained decoder.

    The rate falls linearly to zero over the run, without warmup.

    Args:
        spec: what to train.
        weights: folder of the pretrained run's weights, in the Hugging Face format.
        data: folder of the prepared task.
        rows: folder of the tokenized rows that the model was pretrained on, which has the tokenizer.
        device: "cpu" or "cuda".

    Raises:
        RunError: a file is missing, or the method refuses the model.
    """

    def __init__(self, spec: FinetuningSpec, weights: Path, data: Path, rows: Path, device: str) -> None:
        self.spec, self.device, self.task = spec, device, TASKS[spec.task]
        tokenizer = load_prepared(rows, read_meta(rows))
        self.train, self.validation = (Examples(data, split, tokenizer, spec.sequence_length) for split in ("train", "validation"))
        model = load_classifier(weights, self.task.classes, derive("head", spec.seed))
        self.method = finetuned(model, spec)
        self.model = model.to(device)
        self.trainable = count_body(self.model)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizers = self.method.optimizers(self.model)
        self.epoch_steps = math.ceil(len(self.train) / spec.batch_rows)
        self.steps = spec.epochs * self.epoch_steps
        self.step, self.seconds, self.loss, self.diverged = 0, 0.0, 0.0, False
        self.history: list[dict[str, float]] = []

    _PROGRESS = ("step", "seconds", "loss", "history")

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on; batch order, dropout and merges are functions of the step."""
        optimizers = [optimizer.state_dict() for optimizer in self.optimizers]
        return {"data": self.train.sha256, "model": self.model.state_dict(), "optimizers": optimizers} | {key: getattr(self, key) for key in self._PROGRESS}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state`.

        Raises:
            RunError: the state was trained on other examples.
        """
        if state["data"] != self.train.sha256:
            raise RunError(f"run {self.spec.name} was trained on other examples up to step {state['step']}: delete its folder in results/checkpoints")
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for key in self._PROGRESS:
            setattr(self, key, state[key])

    def advance(self) -> None:
        """One optimizer step, and the validation metric where an epoch ends."""
        started = time.monotonic()
        epoch, place = divmod(self.step, self.epoch_steps)
        order = np.random.default_rng(derive("finetuning order", self.spec.seed, epoch)).permutation(len(self.train))
        batch = self.train.batch(order[place * self.spec.batch_rows : (place + 1) * self.spec.batch_rows])
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.spec.lr * (1 - self.step / self.steps)
        torch.manual_seed(derive("finetuning step", self.spec.seed, self.step))
        self.model.train()
        loss = self._forward(batch, targets=True).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.method.clip_norm(self.step, self.spec.clip_norm))
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.method.after_step(self.step)
        self.step += 1
        self.loss += loss.item()
        self.diverged = not math.isfinite(self.loss)
        if place + 1 == self.epoch_steps and not self.diverged:
            value = self.evaluate()
            self.history.append({"epoch": epoch + 1, "train_loss": self.loss / self.epoch_steps, "metric": value})
            self.loss = 0.0
        self.seconds += time.monotonic() - started

    def _forward(self, batch: Batch, *, targets: bool) -> Any:
        autocast = torch.autocast(self.device, dtype=torch.bfloat16) if self.spec.precision == "bf16" else contextlib.nullcontext()
        labels = {"labels": batch.targets.to(self.device)} if targets else {}
        with autocast:
            return self.model(input_ids=batch.tokens.to(self.device), attention_mask=batch.mask.to(self.device), **labels)

    @torch.no_grad()
    def evaluate(self) -> float:
        """The task's metric over the validation examples."""
        self.model.eval()
        found = []
        for start in range(0, len(self.validation), EVALUATION_ROWS):
            indices = range(start, min(start + EVALUATION_ROWS, len(self.validation)))
            logits = self._forward(self.validation.batch(indices), targets=False).logits.float().cpu()
            found.append(logits[:, 0] if self.task.classes == 1 else logits.argmax(-1))
        return METRICS[self.task.metric](torch.cat(found).numpy(), self.validation.targets)

    def without_learning(self) -> float:
        """The metric of one answer for all; see :func:`poet.finetuning.metrics.without_learning`."""
        return without_learning(self.task.metric, self.train.targets, self.validation.targets)


def load_classifier(weights: Path, classes: int, seed: int) -> torch.nn.Module:
    """A pretrained decoder with a new head on its last token, in fp32.

    Args:
        weights: in the Hugging Face format.
        classes: outputs of the head; 1 for a score.
        seed: of the head's weights.

    Raises:
        RunError: there are no weights that can be read.
    """
    import transformers

    transformers.logging.set_verbosity_error()  # it would report that the head is new
    transformers.logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            kind = {"problem_type": "regression"} if classes == 1 else {}
            return transformers.AutoModelForSequenceClassification.from_pretrained(weights, num_labels=classes, dtype=torch.float32, **kind)
    except (OSError, ValueError) as error:
        raise RunError(f"{weights} holds no weights that can be read ({str(error).splitlines()[0]}): train their run again") from None
