"""Data-parallel training: how the processes of a run divide a step, and what they communicate.

``torchrun`` starts the processes and gives each its rank. Every process holds the whole model and reads every batch. It computes the
gradients of its own micro-batches, ``DistributedDataParallel`` averages them over the processes, and every process makes the same step.
W is never sent: initialization, merges and batch order are functions of seeds, and checksums verify that all processes agree.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from poet.training.errors import RunError

#: How long a process waits for the others before it fails: longer than probes or saving take.
PATIENCE = timedelta(minutes=30)


class Processes:
    """The processes that train a run together, seen from one of them. By default it is the only one.

    Attributes:
        rank: number of this process. Process 0 writes the files.
        size: number of processes.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def micro_batches(self, rows: Tensor, count: int) -> list[tuple[int, Tensor]]:
        """This process's micro-batches of a step, each with its number among the micro-batches of all processes.

        The step has ``count`` micro-batches, or the next multiple of :attr:`size`, so that every process has equally many. Where
        ``count`` is a multiple, they are those of a single process. Otherwise they are smaller, which changes the numbers of a
        method with dropout: it is drawn for each micro-batch.

        Args:
            rows: (B, ...), all rows of the step.
            count: micro-batches of a step (``RunSpec.accumulation``).

        Raises:
            RunError: there are fewer rows than micro-batches.
        """
        each = math.ceil(count / self.size)
        if each * self.size > len(rows):
            raise RunError(f"{self.size} processes cannot share a step of {len(rows)} rows: use fewer (resources: gpus, processes)")
        parts = rows.tensor_split(each * self.size)
        return [(i, parts[i]) for i in range(self.rank * each, (self.rank + 1) * each)]

    def data_parallel(self, model: nn.Module) -> nn.Module:
        """``model``, or a wrapper around it that averages gradients over the processes in its backward pass."""
        if self.size == 1:
            return model
        # Buffers hold the permutations, and are never sent. Parameters, the frozen W among them, start alike and are compared by checksum.
        return DistributedDataParallel(model, forward_sync_buffers=False, init_sync=False, gradient_as_bucket_view=True)

    def without_sum(self, model: nn.Module) -> contextlib.AbstractContextManager:
        """A context in which a backward pass of :meth:`data_parallel`'s model accumulates gradients without exchanging them."""
        return model.no_sync() if self.size > 1 else contextlib.nullcontext()

    def shard(self, optimizer: torch.optim.AdamW) -> torch.optim.Optimizer:
        """An optimizer that makes the same steps, and keeps only the state of this process's share of the parameters (ZeRO, stage 1)."""
        if self.size == 1:
            return optimizer
        from poet.training.sharding import ShardedAdamW  # here, because importing it takes seconds

        return ShardedAdamW(optimizer)

    def sum(self, *numbers: float) -> list[float]:
        """The sum of each number over the processes, in fp64."""
        return self._reduce(torch.tensor(numbers, dtype=torch.float64), dist.ReduceOp.SUM)

    def maximum(self, *numbers: float) -> list[float]:
        """The largest value of each number over the processes."""
        return self._reduce(torch.tensor(numbers, dtype=torch.float64), dist.ReduceOp.MAX)

    def _reduce(self, numbers: Tensor, operation: dist.ReduceOp) -> list[float]:
        if self.size > 1:
            dist.all_reduce(numbers, operation)  # a CPU tensor: no process waits for its GPU
        return numbers.tolist()

    def broadcast(self, value: object) -> object:
        """The first process's ``value``, on every process."""
        values = [value]
        if self.size > 1:
            dist.broadcast_object_list(values)
        return values[0]

    def require_equal(self, tensors: Iterable[tuple[str, Tensor]], where: str) -> None:
        """Compare tensors by their :func:`checksum`.

        Args:
            tensors: by name.
            where: the run and its step, for the sentence of the error.

        Raises:
            RunError: two processes have different tensors.
        """
        if self.size == 1:
            return
        sums = checksum(tensors)
        everyone = [torch.empty_like(sums) for _ in range(self.size)]
        dist.all_gather(everyone, sums)
        if different := [rank for rank, other in enumerate(everyone) if not torch.equal(other, everyone[0])]:
            raise RunError(
                f"{where}: process {different[0]} of {self.size} holds other weights than process 0: use machines of one kind, "
                "and start again: it goes on from the last checkpoint"
            )


@torch.no_grad()
def checksum(tensors: Iterable[tuple[str, Tensor]]) -> Tensor:
    """Two integers, int64 (2,) on the CPU; they differ for different tensors unless sums collide.

    The bits of each tensor are summed as integers on its own device, weighted by row number and by column number. Only the sums are
    copied to the CPU.
    """
    total = torch.zeros(2, dtype=torch.int64)
    for position, (_, tensor) in enumerate(tensors, start=1):
        words = tensor.detach().reshape(len(tensor) if tensor.ndim > 1 else 1, -1).contiguous()
        words = words.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[words.element_size()])
        for side, dimension in enumerate((0, 1)):
            line = words.sum(dimension, dtype=torch.int64)
            weights = torch.arange(1, len(line) + 1, device=line.device)
            total[side] += position * (line * weights).sum().cpu()  # wraps around, alike everywhere
    return total


def join(device: str) -> Processes:
    """Join the processes that ``torchrun`` started; without ``torchrun``, this process is the only one.

    The group is never closed: it ends with the process (by ``os._exit``), because closing it before its models are freed can hang.

    Args:
        device: "cpu" or "cuda"; each process uses the GPU with its number on its node.

    Raises:
        RunError: the node has no GPU of that number.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        return Processes()
    if device == "cuda":
        place = int(os.environ["LOCAL_RANK"])
        if place >= torch.cuda.device_count():
            raise RunError(f"process {place} of this node has no GPU: torch sees {torch.cuda.device_count()}")
        torch.cuda.set_device(place)
    dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo", timeout=PATIENCE)
    return Processes(dist.get_rank(), dist.get_world_size())
