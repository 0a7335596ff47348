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

from poet.data.rows import IGNORED_LABEL, TokenRows, TrainingBatches
from poet.methods import get_method
from poet.methods.contract import parse_parameters
from poet.system.progress import say
from poet.training import evaluator
from poet.training.distribution import Processes
from poet.training.errors import RunError
from poet.training.evaluator import summed_loss
from poet.training.llama import build_llama
from poet.training.memory import count_elements
from poet.training.probes import Probes
from poet.training.schedule import cosine
from poet.training.seeds import derive
from poet.training.spec import RunSpec

#: A history has a row for each step up to this many, and up to twice as many rows of a longer run; evaluations have rows, too.
HISTORY_ROWS = 500
#: Validation rows of one forward pass, as a multiple of a micro-batch: evaluation keeps no graph.
EVALUATION_BATCH = 4
#: Most logits of such a pass: with a large vocabulary, more would take more memory than training does.
EVALUATION_LOGITS = 2**30


class Run:
    """One run in memory.

    Args:
        spec: what to train.
        data: folder of tokenized rows.
        device: "cpu" or "cuda".
        processes: the processes that train it together; None: this one alone.
        shard_optimizer: divide the optimizer's state among the processes, where the method allows it.

    Raises:
        RunError: data and spec do not fit each other, or the method refuses the model.
    """

    def __init__(
        self, spec: RunSpec, data: Path, device: str, processes: Processes | None = None, *, shard_optimizer: bool = False
    ) -> None:
        self.spec, self.device, self.processes = spec, device, processes or Processes()
        self.batches = TrainingBatches(data, spec.batch_rows, derive("batch order", spec.seed))
        self.validation_rows = TokenRows(data, "validation")
        self._check_data(data)
        # The same draws for every method, so that no method is luckier with its initialization.
        model = build_llama(spec.architecture, seed=derive("initialization", spec.seed))
        self.total_parameters = sum(p.numel() for p in model.parameters())
        try:
            method = get_method(spec.method)
            self.method = method(parse_parameters(method, spec.parameters), weight_decay=spec.weight_decay)
            self.model = self.method.prepare(model, derive("method", spec.seed)).to(device)
            self.probes = Probes(spec, self.model, idle=not self.processes.first)
        except ValueError as error:  # the core raises it for a block size, a budget, ... that does not fit this model
            raise RunError(f"run {spec.name}: {error}") from None
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.parallel = self.processes.data_parallel(self.model)
        self.optimizers = self.method.optimizers(self.model)
        self.sharded = shard_optimizer and method.shards_state and self.processes.size > 1
        if self.sharded:
            self.optimizers = [self.processes.shard(optimizer) for optimizer in self.optimizers]
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["peak_lr"] = group["lr"]
        self.step, self.tokens, self.seconds, self.diverged = 0, 0, 0.0, False
        self.history: list[dict[str, Any]] = []
        self.elements: list[dict[str, Any]] = []
        for merged in (False, True):
            self.probes.take(0, merged=merged)
        # Sum of this process's step losses since the last history row; on the device, so that no step waits for a copy.
        self.window = torch.zeros((), device=device)
        self.window_steps, self.window_seconds = 0, 0.0
        self.require_equal()

    def _check_data(self, data: Path) -> None:
        description = self.batches.meta["data"]
        if different := sorted(key for key in description if description[key] != self.spec.data.get(key)):
            raise RunError(
                f"the data in {data} is not what run {self.spec.name} asks for ({different[0]}: "
                f"{description[different[0]]!r} instead of {self.spec.data.get(different[0])!r}): prepare it again"
            )
        found = (self.batches.sequence_length, self.batches.vocab_size)
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

    def require_equal(self) -> None:
        """Compare the weights, permutations included, with those of the other processes.

        Raises:
            RunError: they differ.
        """
        self.processes.require_equal(self.model.state_dict().items(), f"run {self.spec.name}, step {self.step}")

    def state(self) -> dict[str, Any] | None:
        """The run's state for a checkpoint, on the first process; None on the others, which have to call this too.

        It has everything that the next step depends on, except batch order, merges and dropout, which are functions of the step.
        It does not depend on the number of processes: a run can go on with another number.
        """
        self.require_equal()  # a checkpoint must hold the weights of all processes
        (window,) = self.processes.sum(self.window.item())
        optimizers = [optimizer.state_dict() for optimizer in self.optimizers]  # all processes gather a sharded one
        if not self.processes.first:
            return None
        return {
            "data": self.batches.sha256,
            "model": self.model.state_dict(),
            "optimizers": optimizers,
            "probes": self.probes.state(),
            "window": window,
            **{key: getattr(self, key) for key in self._PROGRESS},
        }

    _PROGRESS = ("step", "tokens", "seconds", "history", "elements", "window_steps", "window_seconds")

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state`, to be called by every process.

        Raises:
            RunError: the state was trained on other data of the same description.
        """
        if state["data"] != self.batches.sha256:
            raise RunError(
                f"run {self.spec.name} was trained up to step {state['step']} on other rows than its data holds now (sha256 "
                f"{state['data'][:12]}, now {self.batches.sha256[:12]}): put them back, or delete its folder in results/checkpoints"
            )
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.probes.restore(state["probes"])
        for key in self._PROGRESS:
            setattr(self, key, state[key])
        self.window.fill_(state["window"] if self.processes.first else 0.0)
        self.require_equal()

    def lr_factor(self, step: int) -> float:
        """The schedule's factor at a step, counted from 0."""
        spec = self.spec
        return cosine(step, spec.steps, minimum_ratio=spec.minimum_lr_ratio, warmup_steps=spec.warmup_steps)

    def train_step(self) -> tuple[torch.Tensor, float]:
        """One optimizer step over all micro-batches; returns (gradient norm before clipping, threshold)."""
        spec = self.spec
        factor = self.lr_factor(self.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * factor
        batch = self.batches.batch(self.step)
        labels = self.validation_rows.labels(batch)
        predicted = int((labels[:, 1:] != IGNORED_LABEL).sum())
        self.tokens += int((labels != IGNORED_LABEL).sum())
        total = torch.zeros((), device=self.device)
        mine = self.processes.micro_batches(torch.stack((batch, labels), 1), spec.accumulation)
        for index, micro_batch in mine:
            tokens, targets = micro_batch.to(self.device).unbind(1)
            # Dropout (LoRA's) draws from the global generator: seeded by step and micro-batch, a resumed run draws the same,
            # and so does one on another number of GPUs.
            torch.manual_seed(derive("step", spec.seed, self.step) + index)
            # Gradients are exchanged with the last micro-batch only. Before a first exchange puts them into DDP's buckets, this would hold them twice.
            more = index != mine[-1][0] and self.parameters[0].grad is not None
            with self.processes.without_sum(self.parallel) if more else contextlib.nullcontext():
                with self.autocast():
                    loss, _ = summed_loss(self.parallel, tokens, targets)
                loss = loss / predicted
                (loss * self.processes.size).backward()  # gradients are averaged over the processes, and the sum is wanted
            total += loss.detach()
        threshold = self.method.clip_norm(self.step, spec.clip_norm)
        norm = nn.utils.clip_grad_norm_(self.parameters, threshold)
        for optimizer in self.optimizers:
            optimizer.step()
        if self.step == 0:  # weights, gradients and optimizer state all exist now
            self.elements = self._elements()
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=self.processes.size == 1)  # with several processes they stay in DDP's buckets
        self.probes.take(self.step + 1, merged=False)
        merged = self.method.after_step(self.step)
        self.step += 1
        if merged:
            self.require_equal()
        self.probes.take(self.step, merged=True)
        self.window += total
        self.window_steps += 1
        return norm, threshold

    def advance(self) -> dict[str, Any] | None:
        """One step, with the evaluation and the history row that are due after it; returns that row, if any."""
        spec, started, probed = self.spec, time.monotonic(), self.probes.seconds
        norm, threshold = self.train_step()
        started += self.probes.seconds - probed  # probes are no part of the method: their time is not counted
        evaluated = self.step == spec.steps or self.step % spec.evaluate_every == 0
        row, due = None, evaluated or self.step % max(1, spec.steps // HISTORY_ROWS) == 0
        loss = self.processes.sum(self.window.item())[0] / self.window_steps if due else None  # waits for the device
        self.window_seconds += time.monotonic() - started
        if due:
            speed = spec.tokens / spec.steps * self.window_steps / self.window_seconds
            self.window.zero_()
            self.window_steps, self.window_seconds = 0, 0.0
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
                "tokens_per_second": speed,
            }
            self.history.append(row)
        self.seconds += time.monotonic() - started
        return row

    def evaluate(self, rows: int) -> float:
        """Validation perplexity over the first ``rows`` rows (0: all)."""
        size = EVALUATION_BATCH * max(1, self.spec.batch_rows // self.spec.accumulation)
        a_row = self.spec.architecture.sequence_length * self.spec.architecture.vocabulary
        size = min(size, max(1, EVALUATION_LOGITS // a_row))
        return evaluator.perplexity(self.model, self.validation_rows, rows, size, self.autocast, self.processes)

    def final_perplexity(self) -> float:
        """Validation perplexity for the record, over the first ``final_evaluation_rows`` rows (0: all).

        NaN where the run has diverged, or where the perplexity is infinite or NaN.
        """
        found = math.nan if self.diverged else self.evaluate(self.spec.final_evaluation_rows)
        return found if math.isfinite(found) else math.nan

    def _elements(self) -> list[dict[str, Any]]:
        """Elements in memory for each linear layer; the state of sharded optimizers is summed over the processes."""
        if not self.sharded:
            return count_elements(self.model, self.optimizers)
        lines = count_elements(self.model, [optimizer.optim for optimizer in self.optimizers])
        states = self.processes.sum(*(line["state"] for line in lines))
        return [{**line, "state": int(state)} for line, state in zip(lines, states, strict=True)]

    def weights_digest(self) -> str:
        """sha256 over the state dict by name: parameters, persistent buffers, and the configuration of POET layers.

        Equal digests mean equal models, bit for bit.
        """
        digest = hashlib.sha256()
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()
