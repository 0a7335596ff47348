"""A benchmark case: one operation at one size, before and after it is set up."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, slots=True)
class Periodic:
    """What is due every ``every`` calls (a merge, a decomposition): timed alone, its share is added to each call."""

    call: Callable[[], object]  # what is timed
    every: int  # calls between two of them
    prepare: Callable[[], object] | None = None  # called before it, not timed
    #: what is timed with it and is a call like the others: what it costs more (or less) than they do is the share's
    then: Callable[[], object] | None = None

    def with_what_follows(self) -> None:
        """What is timed where there is a ``then``."""
        self.call()
        self.then()


@dataclass(frozen=True, slots=True)
class Work:
    """A case that has been set up on a device."""

    call: Callable[[], object]  # what is timed; every call does the same
    tensors: Callable[[], Iterable[torch.Tensor]]  # the tensors that are held between calls
    periodic: Periodic | None = None  # see :class:`Periodic`
    #: relative error of the call's result against fp64, where the case checks one
    error: Callable[[], float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of the benchmark table."""

    operation: str  # "layer", "step", or the name of a kernel
    shape: str  # "512x1376" (inputs x outputs), "64x256x256" (a batch of blocks), or the name of a model
    tokens: int | None = None  # of one call; None for kernels
    dtype: str  # a key of :data:`DTYPES`
    variant: str  # "linear", "adamw", "poet-fs-1_2", "k=3", ...
    build: Callable[[str], Work]  # set up on a device ("cpu", "cuda", or "meta", where nothing is computed)
    #: operations of one call where what the call multiplies does not say them
    count: Callable[[], float] | None = None
    reference: Case | None = None  # the case that the ratio is taken to; None where there is none
    plain: bool = False  # it is the one that others are compared with. Its ratio to itself says what noise does.
    #: a package that it cannot do without, beside torch, Triton, transformers, numpy and pydantic
    needs: str | None = None
    least_rounds: int = 5  # rounds, however long one takes
    cpu_flops: float = 6e10  # left out on a CPU if it has more operations
    threads: int | None = None  # on a CPU; None takes those of the process

    @property
    def flops(self) -> float:
        """Operations of the matrix products of one call, counted on shapes alone; a multiply and an add are two."""
        return self.count() if self.count else _products(self.build)

    @property
    def against(self) -> Case | None:
        """The case that the ratio is taken to."""
        return self if self.plain else self.reference

    @property
    def id(self) -> str:
        """What ``pytest -k`` selects by: "layer-512x1376-1024-fp32-poet-fs-1_2"."""
        parts = (self.operation, self.shape, self.tokens, self.dtype, self.variant)
        return "-".join(str(part) for part in parts if part not in (None, ""))


@functools.cache
def _products(build: Callable[[str], Work]) -> int:
    call = build("meta").call
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()
