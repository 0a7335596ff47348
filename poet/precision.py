"""The dtypes in which POET computes."""

from __future__ import annotations

import contextlib

import torch

#: Device types with autocast. Determined at import: ``torch.compile`` cannot trace the query.
AUTOCAST = frozenset(
    device for device in ("cpu", "cuda", "hpu", "mps", "mtia", "xla", "xpu") if torch.amp.is_autocast_available(device)
)


def autocast_off(device: str) -> contextlib.AbstractContextManager:
    """A context without autocast on a type of device ("cuda"): autocast would round the products of R and P to half precision."""
    if device in AUTOCAST and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype of intermediate results: fp32 for bf16 and fp16, so that only results are rounded; others stay themselves."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``tensor.to(dtype)``, without the call where the dtype is right: a small layer makes thirty such calls a step."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)
