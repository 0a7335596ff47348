"""Memory of a training step, from a simulated step: real modules, real optimizers, tensors without data.

The step runs on fake tensors (``torch._subclasses.fake_tensor``) in the run's precision, and every storage is counted from
its allocation until it is freed. All decoder layers are alike, so each quantity is linear in their number. Weights, gradients
and the optimizer's memory are extrapolated from models of one and two layers. Forward and backward take longer to simulate
and run with one layer: each further layer adds the tensors that it saves for its backward pass.

POET's transform is the reference's, whose temporaries are as large as a few weights of one layer; the Triton kernels need less.
Not counted: memory that an operator allocates and frees before it returns, CUDA's context, library workspaces, fragmentation.
A card's memory is therefore taken as its nominal size, such as 80e9 bytes for a card with 80 GiB.
"""

import contextlib
import math
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from poet.data.rows import IGNORED_LABEL
from poet.launch.operations import on_meta
from poet.methods.contract import Method
from poet.training.spec import RunSpec


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes on one device at the peak of a step.

    Attributes:
        weights: parameters and buffers.
        gradients: gradients of the trained parameters, counted as held all the time. They are with several micro-batches
            or devices; a step of one micro-batch on one device may need less, by at most this number.
        state: the optimizers' state, or this device's share of it.
        working: saved activations, logits, and other tensors that live for a part of the step.
    """

    weights: int
    gradients: int
    state: int
    working: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.state + self.working


def micro_batch_rows(spec: RunSpec, devices: int) -> int:
    """Rows of a micro-batch on one device; see ``poet.training.distribution.Processes.micro_batches``."""
    return math.ceil(spec.batch_rows / (devices * math.ceil(spec.accumulation / devices)))


def footprint(spec: RunSpec, *, devices: int = 1, divided: int = 1) -> Footprint:
    """The memory of one of the devices that train a run.

    Args:
        devices: number of devices that train it together; each holds the whole model.
        divided: number of devices that divide the optimizers' state.

    Raises:
        ValueError: the method refuses the parameters or the model.
    """
    rows = micro_batch_rows(spec, devices)
    layers = spec.architecture.layers
    shallow, two = (replace(spec, architecture=replace(spec.architecture, layers=count)) for count in (1, 2))
    peak, saved = _forward_and_backward(shallow, rows)
    one, two = _optimizer(shallow), _optimizer(two)
    step = {name: one[name] + (layers - 1) * (two[name] - one[name]) for name in one}
    working = max(peak + (layers - 1) * saved, step["optimizer"] - step["state"])
    return Footprint(step["weights"], step["gradients"], math.ceil(step["state"] / divided), working)


class _Allocations(TorchDispatchMode):
    """Counts the storages made inside the block: bytes that are alive (``now``), and their maximum (``peak``)."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._alive: dict[int, weakref.finalize] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None) -> Any:
        result = function(*args, **(kwargs or {}))
        for made in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(made, Tensor):
                self._add(made.untyped_storage())
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key not in self._alive:  # known: a view, or changed in place
            self._alive[key] = weakref.finalize(storage, self._remove, key, size)
            self.now += size
            self.peak = max(self.peak, self.now)

    def _remove(self, key: int, size: int) -> None:
        del self._alive[key]
        self.now -= size


@contextlib.contextmanager
def _simulated(spec: RunSpec) -> Iterator[tuple[Method, nn.Module, _Allocations]]:
    """A run's method, its model and the count of allocations, in a block where tensors have no data."""
    method, model = on_meta(spec)
    with warnings.catch_warnings(action="ignore"), FakeTensorMode(allow_non_fake_inputs=True), _Allocations() as memory:
        model.to_empty(device="cpu")
        yield method, model, memory


def _trained(model: nn.Module) -> list[nn.Parameter]:
    """The trained parameters, after giving each a gradient."""
    trained = [p for p in model.parameters() if p.requires_grad]
    for p in trained:
        p.grad = torch.empty_like(p)
    return trained


def _forward_and_backward(spec: RunSpec, rows: int) -> tuple[int, int]:
    """Peak bytes of both passes beside weights and gradients in a model of one layer, and the bytes that each further layer adds."""
    autocast = torch.autocast("cpu", dtype=torch.bfloat16) if spec.precision == "bf16" else contextlib.nullcontext()
    now = []
    with _simulated(spec) as (_, model, memory):
        _trained(model)
        held = memory.peak = memory.now
        decoder = model.get_decoder()
        for module in (decoder.layers[0], decoder.norm):  # hooks before and behind the layer
            module.register_forward_pre_hook(lambda *_: now.append(memory.now))
        with autocast:
            loss = _loss(model, torch.zeros(rows, spec.architecture.sequence_length, dtype=torch.int64))
        loss.backward()
        before, behind = now
        return memory.peak - held, behind - before


def _optimizer(spec: RunSpec) -> dict[str, int]:
    """Bytes of ``weights``, ``gradients`` and ``state``; ``optimizer``: peak of the optimizer's step beside the first two, with its state."""
    with _simulated(spec) as (method, model, memory):
        optimizers = method.optimizers(model)
        weights = memory.now
        trained = _trained(model)
        held = memory.peak = memory.now
        nn.utils.clip_grad_norm_(trained, spec.clip_norm)
        for optimizer in optimizers:
            optimizer.step()
        held_by = (value for optimizer in optimizers for found in optimizer.state.values() for value in found.values())
        state = sum(value.untyped_storage().nbytes() for value in held_by if isinstance(value, Tensor))
        return {"weights": weights, "gradients": held - weights, "state": state, "optimizer": memory.peak - held}


def _loss(model: nn.Module, tokens: Tensor) -> Tensor:
    """The loss of ``poet.training.evaluator.summed_loss``, without its count of tokens, which needs the values that fake tensors lack."""
    logits = model(input_ids=tokens).logits[:, :-1]
    return nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), tokens[:, 1:].flatten(), ignore_index=IGNORED_LABEL, reduction="sum"
    )
