"""Which implementation an operator takes, and in which precision it computes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
from collections.abc import Callable

import torch
from torch import Tensor

#: Types of device that know autocast. Asked once: torch 2.11 cannot trace the question.
AUTOCAST = frozenset(
    device for device in ("cpu", "cuda", "hpu", "mps", "mtia", "xla", "xpu") if torch.amp.is_autocast_available(device)
)


def full_precision(device: str) -> contextlib.AbstractContextManager:
    """Autocast switched off: it would round what an operator computes with to half precision, and merges with it."""
    if device in AUTOCAST:
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()


def in_dtype_of(first: Tensor, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    """The tensors in the dtype of the first; None stays None."""
    return tuple(None if tensor is None else tensor.to(first.dtype) for tensor in tensors)


def wide(dtype: torch.dtype) -> torch.dtype:
    """What half precision is computed in: only results are rounded."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def without_autocast(function: Callable) -> Callable:
    """A function whose first argument is a tensor, with autocast switched off."""

    @functools.wraps(function)
    def wrapped(first: Tensor, *rest):
        with full_precision(first.device.type):
            return function(first, *rest)

    return wrapped


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def on_gpu(reference: Callable, dtype: torch.dtype) -> Callable:
    """What computes a reference's operation on a GPU: its Triton kernel, or itself in fp64 or where there is no Triton.

    The kernel is the function of the same name, less "_reference", in the file of the same name in
    ``poet.kernels.gpu``, which is imported by the first call.
    """
    if dtype == torch.float64 or not _has_triton():
        return reference
    module = importlib.import_module(f"poet.kernels.gpu.{reference.__module__.rpartition('.')[2]}")
    return getattr(module, reference.__name__.removesuffix("_reference"))
