"""The state of one finetuning run: model, method, optimizers, progress, and one step of it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from poet.finetuning.methods import count_body, finetuned
from poet.finetuning.problems import problem_class
from poet.finetuning.spec import FinetuningSpec
from poet.training.errors import RunError
from poet.training.seeds import derive


class FinetuningRun:
    """One run in memory: a problem (:mod:`poet.finetuning.problems`) and the method that trains its model.

    The learning rate falls linearly to zero over the run, without warmup.

    Args:
        spec: what to train.
        weights: folder of the pretrained run's weights, in the Hugging Face format; None if there is no such run.
        data: folder of the prepared task.
        rows: folder of the tokenized rows of pretraining, which has the tokenizer; None if the tokenizer is beside the weights.
        device: "cpu" or "cuda".

    Raises:
        RunError: a file is missing, or the method refuses the model.
    """

    def __init__(self, spec: FinetuningSpec, weights: Path | None, data: Path, rows: Path | None, device: str) -> None:
        self.spec, self.device = spec, device
        self.problem = problem_class(spec.task)(spec, weights, data, rows)
        self.train, self.validation = self.problem.train, self.problem.validation
        self.method = finetuned(self.problem.model, spec)
        self.model = self.problem.model.to(device)
        self.trainable = count_body(self.model)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizers = self.method.optimizers(self.model)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["peak_lr"] = group["lr"]
        self.epoch_steps = math.ceil(len(self.train) / spec.batch_rows)
        self.steps = spec.epochs * self.epoch_steps
        self.step, self.seconds, self.loss = 0, 0.0, 0.0
        self.history: list[dict[str, float]] = []

    @property
    def diverged(self) -> bool:
        """Whether the loss since the last epoch, or the metric of an epoch, is not finite."""
        return not all(map(math.isfinite, (self.loss, *(epoch["metric"] for epoch in self.history))))

    _PROGRESS = ("step", "seconds", "loss", "history")

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, except batch order, noise, dropout and merges, which are functions of the step."""
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
        """One optimizer step, and the problem's evaluation where an epoch ends."""
        started = time.monotonic()
        epoch, place = divmod(self.step, self.epoch_steps)
        order = np.random.default_rng(derive("finetuning order", self.spec.seed, epoch)).permutation(len(self.train))
        inputs = self.problem.inputs(order[place * self.spec.batch_rows : (place + 1) * self.spec.batch_rows], self.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * (1 - self.step / self.steps)
        torch.manual_seed(derive("finetuning step", self.spec.seed, self.step))
        self.model.train()
        loss = self._forward(inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.method.clip_norm(self.step, self.spec.clip_norm))
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.method.after_step(self.step)
        self.step += 1
        self.loss += loss.item()
        if place + 1 == self.epoch_steps and not self.diverged:
            value = self.evaluate()
            self.history.append({"epoch": epoch + 1, "train_loss": self.loss / self.epoch_steps, "metric": value})
            self.loss = 0.0
        self.seconds += time.monotonic() - started

    @torch.no_grad()
    def evaluate(self) -> float:
        """The problem's metric over the validation examples."""
        self.model.eval()
        return self.problem.evaluate(self._forward)

    @torch.no_grad()
    def finish(self, folder: Path, check: Callable[[], None]) -> dict[str, Any]:
        """The problem's entries of the record; see :meth:`poet.finetuning.problems.contract.Problem.finish`."""
        self.model.eval()
        with self._autocast():
            return self.problem.finish(self.model, self.method, folder, check, self.diverged)

    def _forward(self, inputs: dict[str, torch.Tensor]) -> Any:
        with self._autocast():
            return self.model(**{name: tensor.to(self.device) for name, tensor in inputs.items()})

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        return torch.autocast(self.device, dtype=torch.bfloat16) if self.spec.precision == "bf16" else contextlib.nullcontext()
