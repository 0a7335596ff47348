"""A benchmark case: one operation at one size, and its work once it is set up."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, slots=True)
class Periodic:
    """Work that is due every ``every`` calls (a merge, a decomposition). It is timed alone; each call gets its share."""

    call: Callable[[], object]  # the work
    every: int  # its period in calls
    prepare: Callable[[], object] | None = None  # called before the work, not timed
    #: the ordinary call after the work, timed with it: the share includes how much longer (or shorter) than others it takes
    then: Callable[[], object] | None = None

    def with_what_follows(self) -> None:
        """The work and the call after it, which are timed together if ``then`` is given."""
        self.call()
        self.then()


@dataclass(frozen=True, slots=True)
class Work:
    """A case that has been set up on a device."""

    call: Callable[[], object]  # the timed function; every call does the same
    tensors: Callable[[], Iterable[torch.Tensor]]  # the tensors that are held between calls
    periodic: Periodic | None = None
    #: relative error of the call's result against fp64; None if the case is no kernel
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
    #: operations of one call; None counts the matrix products of a call on the meta device
    count: Callable[[], float] | None = None
    reference: Case | None = None  # the case that the ratio is taken to, if any
    plain: bool = False  # other cases are compared with it. Its ratio to itself shows the noise.
    #: a package that the case needs beside torch, Triton, transformers, numpy and pydantic
    needs: str | None = None
    least_rounds: int = 5  # however long a round takes
    cpu_flops: float = 6e10  # the case is left out on a CPU if it has more operations
    threads: int | None = None  # on a CPU; None takes the process's number

    @property
    def flops(self) -> float:
        """Operations of the matrix products of one call, counted from shapes; a multiply and an add are two."""
        return self.count() if self.count else _products(self.build)

    @property
    def against(self) -> Case | None:
        """The case that the ratio is taken to: a plain case is its own."""
        return self if self.plain else self.reference

    @property
    def id(self) -> str:
        """The name by which ``pytest -k`` selects, such as "layer-512x1376-1024-fp32-poet-fs-1_2"."""
        parts = (self.operation, self.shape, self.tokens, self.dtype, self.variant)
        return "-".join(str(part) for part in parts if part not in (None, ""))


@functools.cache
def _products(build: Callable[[str], Work]) -> int:
    call = build("meta").call
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()
