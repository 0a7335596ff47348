"""What the kernels share: how tiles are enumerated, how products of fp32 numbers are rounded, where a launch goes."""

from __future__ import annotations

import contextlib

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Buffers that a loop over loads has in flight. AMD has 64 KB of shared memory.
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
    """How ``tl.dot`` may round its operands.

    For fp32 torch's own switch decides (``torch.set_float32_matmul_precision``): "highest", the default, asks for fp32
    products, which are three TF32 ones on NVIDIA; otherwise one TF32 product. 16-bit operands are exact.
    """
    if dtype != torch.float32:
        return "ieee"
    if torch.get_float32_matmul_precision() != "highest":
        return "tf32"
    return "ieee" if torch.version.hip else "tf32x3"


def launch_device(tensor: Tensor):
    """A context in which Triton launches on the tensor's device (the interpreter's tensors have none to select)."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()
