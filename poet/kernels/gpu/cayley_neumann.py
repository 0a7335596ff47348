"""The Cayley-Neumann map and its pull-back on a GPU: the kernels behind :mod:`poet.kernels.cayley_neumann`.

Two ways, by block size.

On chip, where Q fits into one multiprocessor's shared memory (b <= 256 in 16-bit numbers on an H100, 64 in fp32): one
program a matrix reads Q once, evaluates R = I + Q(2I + ... + Q(2I + Q(2I + Q))) by Horner's rule on panels of rows,
and writes R. It does k products where the factored polynomial does k/2 + 1, because products with X = Q^2 would need X
beside Q in shared memory. But it moves 4 bytes per element of Q in bf16 where product after product moves 12 (k = 3),
and at b = 256 traffic is what bounds those: 4b^3 operations over 12 b^2 bytes are 85 operations a byte, against more
than 200 that an H100 needs to be kept busy; over 4 b^2 bytes they are 256.

Tiled, for larger blocks and for the pull-back: batched products with an epilogue. Those whose result is symmetric (X
and the sums) compute the tiles (i, j), i <= j, and mirror them. With F_i = E_i - I, so F_1 = X and F_i = X + X F_{i-1},
and M = X + 2Q, the identity is never an operand:

- k = 2j + 1:   R = I + M + F_j + M F_j;
- k = 2j >= 2:  R = I + 2 F_j + 2Q + Q (F_j + F_{j-1}).

A 16-bit operand is then rounded relative to a small number and not to one near 1. What a later product multiplies is
kept in Q's dtype (it would be rounded to that anyway); what is only added to later is kept in fp32.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from poet.kernels.gpu.products import product, symmetric_product, with_transpose
from poet.kernels.gpu.tiles import input_precision, launch_device


@triton.jit(do_not_specialize=["terms"])
def _horner_kernel(
    q_ptr, out_ptr, b, terms, BLOCK_M: tl.constexpr, BLOCK_B: tl.constexpr, PRECISION: tl.constexpr
):
    """R of one matrix; ``terms`` >= 1, ``BLOCK_B`` >= b."""
    matrix = tl.program_id(0).to(tl.int64)
    q_ptr += matrix * b * b
    out_ptr += matrix * b * b
    columns = tl.arange(0, BLOCK_B)[None, :]
    inner = tl.arange(0, BLOCK_B)[:, None]
    q = tl.load(q_ptr + (inner * b + columns), mask=(inner < b) & (columns < b), other=0.0)
    rows = tl.arange(0, BLOCK_M)[:, None]
    panel = tl.load(q_ptr + (rows * b + columns), mask=(rows < b) & (columns < b), other=0.0)
    for first in range(0, b, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)[:, None]
        # 2I + Q is exact: Q has no diagonal. Later sums are rounded relative to 2 on the diagonal only, where they
        # multiply Q: no larger than the rounding of R's own entries.
        left = (panel.to(tl.float32) + tl.where(rows == columns, 2.0, 0.0)).to(q.dtype)
        # The next panel is on its way while this one is multiplied.
        following = rows + BLOCK_M
        panel = tl.load(q_ptr + (following * b + columns), mask=(following < b) & (columns < b), other=0.0)
        for _ in range(terms - 1):
            left = (tl.dot(left, q, input_precision=PRECISION) + tl.where(rows == columns, 2.0, 0.0)).to(q.dtype)
        result = tl.dot(left, q, input_precision=PRECISION) + tl.where(rows == columns, 1.0, 0.0)
        tl.store(out_ptr + (rows * b + columns), result, mask=(rows < b) & (columns < b))


#: Rows of a panel of the on-chip kernel, and the largest block that it takes, by bytes per element.
PANEL = 64
ON_CHIP = {2: 256, 4: 64}


def horner_launch(b: int, element_size: int) -> tuple[dict[str, int], int, int]:
    """(blocks, num_warps, bytes of shared memory) of the on-chip kernel; ``tests/kernels/gpu`` compares the bytes.

    Shared memory holds Q and a panel of 16-bit numbers; of fp32, Q and its split into parts for three TF32 products.
    """
    block = max(32, triton.next_power_of_2(b))
    blocks = {"BLOCK_M": min(PANEL, block), "BLOCK_B": block}
    shared = 2 * block * (block + PANEL) if element_size == 2 else 12 * block * block
    return blocks, 8 if block > 128 else 4, shared


@functools.cache
def _shared_memory(device: int) -> int:
    """Bytes that one block may have."""
    return triton.runtime.driver.active.utils.get_device_properties(device)["max_shared_mem"]


def _stays_on_chip(q: Tensor) -> bool:
    b, element_size = q.shape[-1], q.element_size()
    if b > ON_CHIP[element_size] or not q.is_cuda:
        return b <= ON_CHIP[element_size]
    _, _, shared = horner_launch(b, element_size)
    return shared <= _shared_memory(q.device.index)


def _on_chip(q: Tensor, terms: int) -> Tensor:
    batch, b, _ = q.shape
    blocks, num_warps, _ = horner_launch(b, q.element_size())
    out = torch.empty_like(q)
    with launch_device(q):
        _horner_kernel[(batch,)](
            q, out, b, terms, **blocks, PRECISION=input_precision(q.dtype), num_warps=num_warps, num_stages=2
        )
    return out


def _sums(square: Tensor, count: int) -> list[Tensor]:
    """[F_1, ..., F_count]."""
    sums = [square]
    while len(sums) < count:
        sums.append(symmetric_product(square, sums[-1], c=square, of_c=1.0))
    return sums


def _sums_and_pair(square: Tensor, count: int) -> tuple[list[Tensor], Tensor]:
    """[F_1, ..., F_count], and F_count + F_{count-1} rounded once (F_0 = 0)."""
    if count == 1:
        return [square], square
    sums = _sums(square, count - 1)
    last, pair = symmetric_product(square, sums[-1], c=square, of_c=1.0, d=sums[-1], second_of_d=1.0)
    return [*sums, last], pair


def _tiled(q: Tensor, terms: int) -> Tensor:
    half = terms // 2
    if half == 0:
        return product(q, q, c=q, of_c=2.0, of_identity=1.0)
    if terms % 2:
        square, left = symmetric_product(q, q, d=q, second_of_d=2.0)
        last = _sums(square, half)[-1]
        return product(left, last, c=left, of_c=1.0, d=last, of_d=1.0, of_identity=1.0)
    sums, pair = _sums_and_pair(symmetric_product(q, q), half)
    return product(q, pair, c=sums[-1], of_c=2.0, d=q, of_d=2.0, of_identity=1.0)


def cayley_neumann(q: Tensor, terms: int) -> Tensor:
    """R = (I + Q)(I + Q + ... + Q^k); see :func:`poet.kernels.cayley_neumann.cayley_neumann_reference`.

    Args:
        q: (B, b, b) skew-symmetric, fp16, bf16 or fp32.
        terms: k >= 0.

    Returns:
        (B, b, b), same dtype.
    """
    q = q.contiguous()
    if not q.numel():
        return torch.empty_like(q)
    if terms == 0:
        return q + torch.eye(q.shape[-1], dtype=q.dtype, device=q.device)
    return _on_chip(q, terms) if _stays_on_chip(q) else _tiled(q, terms)


def _gradients(q: Tensor, grad: Tensor, terms: int) -> tuple[Tensor, Tensor, float]:
    """(gradient with respect to X, D, factor): factor D is the gradient with respect to Q not by way of X; k >= 1."""
    half = terms // 2
    if half == 0:
        return grad, grad, 2.0
    if terms % 2:
        square, left = symmetric_product(q, q, d=q, second_of_d=-2.0)
        sums = _sums(square, half)
        direct = product(grad, sums[-1], out=torch.float32, c=grad, of_c=1.0)
        if half == 1:
            by_square = product(left, grad, out=torch.float32, c=direct, of_c=1.0, d=grad, of_d=1.0)
            return by_square, direct, 2.0
        by_sum, by_square, rest, factor = product(left, grad, c=grad, of_c=1.0), direct, None, 2.0
    else:
        square = symmetric_product(q, q)
        sums, pair = _sums_and_pair(square, half)
        direct = product(grad, pair, out=torch.float32, c=grad, of_c=2.0)
        if half == 1:
            return product(q, grad, out=torch.float32, sign=-1.0, c=grad, of_c=2.0), direct, 1.0
        rest, by_sum = product(q, grad, sign=-1.0, d=grad, second_of_d=2.0)
        by_square, factor = None, 1.0
    for i in range(half, 1, -1):
        # X's part of E_i = I + X E_{i-1}, with E_{i-1} = I + F_{i-1}; `rest` is E_{j-1}'s own gradient, for even k.
        of_c = 0.0 if by_square is None else 1.0
        by_square = product(by_sum, sums[i - 2], out=torch.float32, c=by_square, of_c=of_c, d=by_sum, of_d=1.0)
        if i > 2:
            by_sum = product(square, by_sum, c=rest, of_c=0.0 if rest is None else 1.0)
            rest = None
    # E_1 = I + X: its gradient X Ebar_2 (+ rest) is X's own.
    by_square = product(
        square, by_sum, out=torch.float32, c=by_square, of_c=1.0, d=rest, of_d=0.0 if rest is None else 1.0
    )
    return by_square, direct, factor


def cayley_neumann_pullback(q: Tensor, grad: Tensor, terms: int) -> Tensor:
    """Skew part of the gradient; see :func:`poet.kernels.cayley_neumann.cayley_neumann_pullback_reference`.

    Args:
        q: (B, b, b), what the map was called with.
        grad: (B, b, b), gradient of the loss with respect to R, same dtype.
        terms: k >= 0.

    Returns:
        (B, b, b), exactly skew-symmetric, same dtype.
    """
    q, grad = q.contiguous(), grad.contiguous()
    if not q.numel():
        return torch.empty_like(q)
    if terms == 0:
        return with_transpose(grad, 0.5, -1.0, q.dtype)
    by_square, direct, factor = _gradients(q, grad, terms)
    symmetric = with_transpose(by_square, 1.0, 1.0, q.dtype)
    total = product(symmetric, q, out=torch.float32, sign=-1.0, c=direct, of_c=factor)
    return with_transpose(total, 0.5, -1.0, q.dtype)
