"""The state of one run: model, method, optimizers, progress, and one step of it."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from poet.data.rows import IGNORED_LABEL, BatchOrder, TokenRows
from poet.methods import get_method
from poet.methods.contract import parse_parameters
from poet.progress import say
from poet.training import evaluator
from poet.training.errors import RunError
from poet.training.evaluator import summed_loss
from poet.training.llama import build_llama
from poet.training.memory import held
from poet.training.probes import Probes
from poet.training.schedule import cosine
from poet.training.seeds import derive
from poet.training.spec import RunSpec

#: A history has about this many rows, however long the run.
HISTORY_ROWS = 500
#: Validation rows of one forward pass, as a multiple of a micro-batch: evaluation keeps no graph.
EVALUATION_BATCH = 4


class Run:
    """One run in memory.

    Args:
        spec: what to train.
        data: folder of tokenized rows.
        device: "cpu" or "cuda".

    Raises:
        RunError: data and spec do not fit each other, or the method refuses the model.
    """

    def __init__(self, spec: RunSpec, data: Path, device: str) -> None:
        self.spec, self.device = spec, device
        self.train_rows, self.validation_rows = TokenRows(data, "train"), TokenRows(data, "validation")
        self._check_data(data)
        self.order = BatchOrder(len(self.train_rows), spec.batch_rows, derive("batch order", spec.seed))
        # The same draws for every method: what differs between two methods is never luck with the initialization.
        model = build_llama(spec.architecture, seed=derive("initialization", spec.seed))
        self.total_parameters = sum(p.numel() for p in model.parameters())
        try:
            method = get_method(spec.method)
            self.method = method(parse_parameters(method, spec.parameters), weight_decay=spec.weight_decay)
            self.model = self.method.prepare(model, derive("method", spec.seed)).to(device)
            self.probes = Probes(spec, self.model)
        except ValueError as error:  # the core's word for a block size, a budget, ... that does not fit this model
            raise RunError(f"run {spec.name}: {error}") from None
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizers = self.method.optimizers(self.model)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["peak_lr"] = group["lr"]
        self.step, self.tokens, self.seconds, self.diverged = 0, 0, 0.0, False
        self.history: list[dict[str, Any]] = []
        self.held: list[dict[str, Any]] = []
        for merged in (False, True):
            self.probes.take(0, merged=merged)
        # Sum of step losses since the last history row; on the device, so that a step waits for nothing.
        self.window = torch.zeros((), device=device)
        self.window_steps = 0

    def _check_data(self, data: Path) -> None:
        description = self.train_rows.meta["data"]
        if different := sorted(key for key in description if description[key] != self.spec.data.get(key)):
            raise RunError(
                f"the data in {data} is not what run {self.spec.name} asks for ({different[0]}: "
                f"{description[different[0]]!r} instead of {self.spec.data.get(different[0])!r}): prepare it again"
            )
        found = (self.train_rows.sequence_length, self.train_rows.vocab_size)
        wanted = (self.spec.architecture.sequence_length, self.spec.architecture.vocabulary)
        if found[0] != wanted[0] or found[1] > wanted[1]:
            raise RunError(
                f"the data in {data} has rows of {found[0]} tokens and a vocabulary of {found[1]}, but run "
                f"{self.spec.name} wants {wanted[0]} and {wanted[1]}: make the scale's data and models agree"
            )

    def autocast(self):
        """The context of a forward pass in the run's precision."""
        if self.spec.precision == "bf16":
            return torch.autocast(self.device, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on. Batch order, merges and dropout are functions of the step."""
        return {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "probes": self.probes.state(),
            **{key: getattr(self, key) for key in self._PROGRESS},
        }

    _PROGRESS = ("step", "tokens", "seconds", "history", "held", "window", "window_steps")

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state`."""
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.probes.restore(state["probes"])
        for key in self._PROGRESS:
            setattr(self, key, state[key])
        self.window = self.window.to(self.device)

    def lr_factor(self, step: int) -> float:
        """The schedule's factor at a step, counted from 0."""
        spec = self.spec
        return cosine(step, spec.steps, minimum_ratio=spec.minimum_lr_ratio, warmup_steps=spec.warmup_steps)

    def train_step(self) -> tuple[torch.Tensor, float]:
        """One optimizer step over all micro-batches; returns (gradient norm before clipping, threshold)."""
        spec = self.spec
        # Dropout (LoRA's) draws from the global generator: seeded by the step, a resumed run draws the same.
        torch.manual_seed(derive("step", spec.seed, self.step))
        factor = self.lr_factor(self.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * factor
        batch = self.train_rows.batch(self.order.indices(self.step))
        labels = self.train_rows.labels(batch)
        predicted = int((labels[:, 1:] != IGNORED_LABEL).sum())
        self.tokens += int((labels != IGNORED_LABEL).sum())
        batch, labels = batch.to(self.device), labels.to(self.device)
        size = spec.batch_rows // spec.accumulation
        total = torch.zeros((), device=self.device)
        for tokens, targets in zip(batch.split(size), labels.split(size), strict=True):
            with self.autocast():
                loss, _ = summed_loss(self.model, tokens, targets)
            loss = loss / predicted
            loss.backward()
            total += loss.detach()
        threshold = self.method.clip_norm(self.step, spec.clip_norm)
        norm = nn.utils.clip_grad_norm_(self.parameters, threshold)
        for optimizer in self.optimizers:
            optimizer.step()
        if self.step == 0:  # all is there: weights, gradients, optimizer state
            self.held = held(self.model, self.optimizers)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        self.probes.take(self.step + 1, merged=False)
        self.method.after_step(self.step)
        self.step += 1
        self.probes.take(self.step, merged=True)
        self.window += total
        self.window_steps += 1
        return norm, threshold

    def advance(self) -> dict[str, Any] | None:
        """One step, with the evaluation and the history row that are due after it; returns that row, if any."""
        spec, started, probed = self.spec, time.monotonic(), self.probes.seconds
        norm, threshold = self.train_step()
        started += self.probes.seconds - probed  # counted apart: what is measured is not part of the method
        seconds = time.monotonic() - started
        evaluated = self.step == spec.steps or self.step % spec.evaluate_every == 0
        row = None
        if evaluated or self.step % max(1, spec.steps // HISTORY_ROWS) == 0:
            loss = self.window.item() / self.window_steps
            self.window.zero_()
            self.window_steps = 0
            self.diverged = not math.isfinite(loss)
            perplexity = None
            if evaluated and not self.diverged:
                perplexity = self.evaluate(spec.evaluation_rows)
                self.diverged = not math.isfinite(perplexity)
            if self.diverged:
                say(f"{spec.name}: diverged at step {self.step}: loss {loss}, validation perplexity {perplexity}")
            row = {
                "step": self.step,
                "tokens": self.tokens,
                "train_loss": loss,
                "validation_perplexity": perplexity,
                "lr_factor": self.lr_factor(self.step - 1),
                "gradient_norm": norm.item(),
                "clip_norm": threshold,
                "tokens_per_second": spec.tokens / spec.steps / seconds,
            }
            self.history.append(row)
        self.seconds += time.monotonic() - started
        return row

    def evaluate(self, rows: int) -> float:
        """Validation perplexity over the first ``rows`` rows (0: all)."""
        size = EVALUATION_BATCH * max(1, self.spec.batch_rows // self.spec.accumulation)
        return evaluator.perplexity(self.model, self.validation_rows, rows, size, self.autocast)

    def weights_digest(self) -> str:
        """sha256 over all parameters and buffers, by name: equal digests mean equal models, bit for bit."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()
