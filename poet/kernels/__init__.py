"""Triton counterparts of :mod:`poet.transform` and of the maps of :mod:`poet.orthogonal`.

Those hold the one reference of each operation, and import the kernel that takes its place where :func:`triton_serves`.
Kernels are operators (``torch.library``), so that ``torch.compile`` keeps them in one graph. They accumulate in fp32, write
each number of a result from exactly one program, and so return the same bits each time.

No GPU has timed them in this form: ``make bench-gpu`` does.
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
    """Whether a tensor is computed with by Triton kernels: on a GPU, where Triton is, in fp32 or half precision."""
    return tensor.is_cuda and tensor.dtype != torch.float64 and _has_triton()
