"""Triton counterparts of :mod:`poet.transform` and of the maps of :mod:`poet.orthogonal`.

Those modules have the one reference of each operation, and import the kernel that replaces it where :func:`triton_serves`.
Kernels are custom operators (``torch.library``), so that ``torch.compile`` keeps them in one graph. They accumulate in fp32.
Each element of a result is written by exactly one program, without atomics, so results are deterministic.

Timed on one GPU: ``docs/speed.md`` says where they are faster than the references, and where they are not.
"""

from __future__ import annotations

import functools
import importlib.util

import torch
from torch import Tensor


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def triton_serves(tensor: Tensor) -> bool:
    """Whether Triton kernels serve for a tensor: it is on a GPU, not fp64, and Triton is installed."""
    return tensor.is_cuda and tensor.dtype != torch.float64 and _has_triton()
