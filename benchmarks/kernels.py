"""Cases of single kernels. On a GPU each kernel is compared with its PyTorch reference, and checked against fp64 first."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor

from benchmarks.case import DTYPES, Case, Work
from benchmarks.layers import SHAPES, configurations
from poet import orthogonal, transform as transforms
from poet.orthogonal import packed_size
from poet.primitives import BlockPrimitive

BLOCK_SIZES = (64, 128, 256, 512, 1024, 2048)
TERMS = (1, 2, 3, 5)
TRANSFORM_BLOCKS = (64, 256, 1024)
TRANSFORM_BUDGETS = (8, 2)


def kernel_cases(
    *, elements: int, dtypes: Iterable[str] = ("fp32",), with_reference: bool = False,
    block_sizes: Iterable[int] = BLOCK_SIZES, terms: Iterable[int] = TERMS, shapes: Iterable[tuple[int, int]] = SHAPES,
    transform_blocks: Iterable[int] = TRANSFORM_BLOCKS, transform_budgets: Iterable[int] = TRANSFORM_BUDGETS,
) -> list[Case]:
    """The cases of all kernels.

    Args:
        elements: number of elements in a batch of square blocks; the number of blocks follows from it.
        dtypes: keys of ``DTYPES``.
        with_reference: time the PyTorch references too, and take ratios to them. On a CPU they are the same code.
        block_sizes, terms: b of the skew-symmetric matrices and k of the map; k other than 3 only at b = 256.
        shapes: (inputs, outputs) of the weights.
        transform_blocks, transform_budgets: block sizes of POET-BS and reciprocal budgets of POET-FS on the weights.
    """
    found: list[Case] = []
    for dtype in dtypes:
        for b, k in itertools.product(block_sizes, terms):
            if k == 3 or b == 256:
                for operation in ("rotation_blocks", "rotation_blocks_vjp"):
                    found += _map(operation, max(1, elements // b**2), b, k, dtype, with_reference)
        for m, n in shapes:
            for variant, config in configurations(m, n, transform_blocks, transform_budgets).items():
                sides = [(p.blocks, p.block_size) for p in config.primitives(m, n)]
                for operation in ("transform", "transform_vjp"):
                    found += _transform(operation, m, n, sides, variant, dtype, with_reference)
    return found


def _cases(
    operation: str, module, arguments: Callable[[str], Sequence], variant: str, with_reference: bool, **names
) -> list[Case]:
    """The case of an operation on ``arguments(device)``; ``with_reference``: behind that of its reference."""
    exact = getattr(module, f"{operation}_reference")

    def build(function: Callable, device: str) -> Work:
        torch.manual_seed(0)
        given = arguments(device)

        def error() -> float:
            return relative_error(function(*given), exact(*map(_in_fp64, given)))

        operands = _tensors(given)
        return Work(partial(function, *given), lambda: operands, error=error)

    def case(function: Callable, variant: str, **more) -> Case:
        return Case(operation=operation, build=partial(build, function), variant=variant, **names, **more)

    function = getattr(module, operation)
    if not with_reference:
        return [case(function, variant)]
    reference = case(exact, f"reference {variant}", plain=True)
    return [reference, case(function, variant, reference=reference)]


def _tensors(values) -> list[Tensor]:
    """Every tensor in nested tuples, in order."""
    if isinstance(values, (tuple, list)):
        return [tensor for value in values for tensor in _tensors(value)]
    return [values] if isinstance(values, Tensor) else []


def _in_fp64(argument):
    if isinstance(argument, transforms.Side):
        return argument.to(torch.float64)
    return argument.double() if isinstance(argument, Tensor) and argument.is_floating_point() else argument


def relative_error(found, exact) -> float:
    """The largest ||found - exact|| / ||exact|| over the results of an operation, in fp64; NaN stays NaN."""
    errors = [
        ((f.double() - e).norm() / e.norm().clamp_min(torch.finfo(torch.float64).tiny)).item()
        for f, e in zip(_tensors(found), _tensors(exact), strict=True)
    ]
    return max(errors, key=lambda value: (value != value, value))


def _map(operation: str, blocks: int, b: int, terms: int, dtype: str, with_reference: bool) -> list[Case]:
    def arguments(device: str) -> tuple:
        packed = torch.randn(blocks, packed_size(b), device=device) * (0.3 / b**0.5)
        packed = packed.to(DTYPES[dtype])  # spectral norm of Q about 0.6, the largest in training
        if operation == "rotation_blocks":
            return packed, terms
        return packed, torch.randn(blocks, b, b, device=device, dtype=DTYPES[dtype]), terms

    shape = f"{blocks}x{b}x{b}"
    return _cases(operation, orthogonal, arguments, f"k={terms}", with_reference, shape=shape, dtype=dtype)


def _transform(operation: str, m: int, n: int, sides, variant: str, dtype: str, with_reference: bool) -> list[Case]:
    def arguments(device: str) -> tuple:
        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, device=device, dtype=DTYPES[dtype])

        r, p = (
            transforms.Side(
                BlockPrimitive(size, b, k), draw(k, b, b) / b**0.5 if k else None, torch.randperm(size, device=device)
            )
            for size, (k, b) in zip((m, n), sides, strict=True)
        )
        given = draw(n, m) / m**0.5, r, p
        return given if operation == "transform" else (*given, draw(n, m), tuple(k > 0 for k, _ in sides), True)

    return _cases(operation, transforms, arguments, variant, with_reference, shape=f"{m}x{n}", dtype=dtype)
