"""What the kernels share: the enumeration of tiles, the precision of fp32 products, and the device of a launch."""

from __future__ import annotations

import contextlib

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Stages of a software-pipelined loop of loads. AMD GPUs have 64 KB of shared memory for them.
STAGES = 2 if torch.version.hip else 3


@triton.jit
def upper_tile(pair, tiles):
    """The ``pair``-th of the tiles*(tiles+1)/2 tiles (i, j), i <= j.

    Two rows of the triangle, the r-th from the top and the r-th from the bottom, fill one row of a rectangle, so that
    no square root (and no rounding of one) is needed.
    """
    even = 1 - tiles % 2
    width = tiles + even
    row = pair // width
    column = pair % width
    top = column >= row + even
    return tl.where(top, row, tiles - row - even), tl.where(top, column - even, tiles - 1 - column)


def input_precision(dtype: torch.dtype) -> str:
    """The ``input_precision`` of ``tl.dot`` for operands of a dtype.

    For fp32 it follows torch's setting (``torch.backends.cuda.matmul.fp32_precision``, which the older ways to allow TF32 set, too).
    Without TF32, the default, products are of fp32, which takes three TF32 products on NVIDIA. Half-precision operands are exact.
    """
    if dtype != torch.float32:
        return "ieee"
    if torch.backends.cuda.matmul.fp32_precision == "tf32":
        return "tf32"
    return "ieee" if torch.version.hip else "tf32x3"


def launch_device(tensor: Tensor):
    """A context in which Triton launches on the tensor's device; the interpreter's CPU tensors need none."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()
