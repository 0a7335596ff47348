"""In which precision POET computes."""

from __future__ import annotations

import contextlib

import torch

#: Types of device that know autocast. Asked once: ``torch.compile`` cannot trace the question.
AUTOCAST = frozenset(
    device for device in ("cpu", "cuda", "hpu", "mps", "mtia", "xla", "xpu") if torch.amp.is_autocast_available(device)
)


def autocast_off(device: str) -> contextlib.AbstractContextManager:
    """A context without autocast, which would round the products of R and P to half precision.

    Args:
        device: the type of a device, such as "cuda".
    """
    if device in AUTOCAST and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype that half precision is computed in, so that only results are rounded; others are their own."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``tensor.to(dtype)`` without the call where there is nothing to do: small layers make thirty of them a step."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)
