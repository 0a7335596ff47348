"""The kernels alone. On a GPU each is compared with its PyTorch reference, and checked against fp64 first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor

from poet.kernels import block_transform as transforms
from poet.kernels import cayley_neumann as maps
from poet.kernels import skew
from poet.kernels.skew import packed_size
from tests.benchmarks import operations
from tests.benchmarks.case import DTYPES, Case, Work
from tests.benchmarks.layers import configurations

BLOCK_SIZES = (64, 128, 256, 512, 1024, 2048)
TERMS = (1, 2, 3, 5)
SHAPES = ((512, 1280), (512, 1376), (1024, 2816), (2048, 5376), (4096, 14336))
TRANSFORM_BLOCKS = (64, 256, 1024)
TRANSFORM_BUDGETS = (8, 2)


def kernel_cases(
    *,
    elements: int,
    dtypes: Iterable[str] = ("fp32",),
    with_reference: bool = False,
    block_sizes: Iterable[int] = BLOCK_SIZES,
    terms: Iterable[int] = TERMS,
    shapes: Iterable[tuple[int, int]] = SHAPES,
    transform_blocks: Iterable[int] = TRANSFORM_BLOCKS,
    transform_budgets: Iterable[int] = TRANSFORM_BUDGETS,
) -> list[Case]:
    """Every kernel.

    Args:
        elements: of a batch of square blocks: there are as many blocks as that makes.
        dtypes: keys of ``DTYPES``.
        with_reference: time the PyTorch references too, and take ratios to them. On a CPU they are the same code.
        block_sizes, terms: b of the skew-symmetric matrices and k of the map; other k than 3 at b = 256 alone.
        shapes, transform_blocks, transform_budgets: of the weights (inputs, outputs) and of the blocks on them.
    """
    found: list[Case] = []
    for dtype in dtypes:
        for b in block_sizes:
            blocks = max(1, elements // b**2)
            found += _pair(_skew("skew_unpack", blocks, b, dtype), with_reference)
            found += _pair(_skew("skew_pack", blocks, b, dtype), with_reference)
            for k in terms:
                if k == 3 or b == 256:
                    found += _pair(_map("cayley_neumann", blocks, b, k, dtype), with_reference)
                    found += _pair(_map("cayley_neumann_pullback", blocks, b, k, dtype), with_reference)
        for m, n in shapes:
            for variant, config in configurations(m, n, transform_blocks, transform_budgets).items():
                sides = [(p.blocks, p.block_size) for p in config.primitives(m, n)]
                found += _pair(_transform(m, n, sides, variant, dtype, backward=False), with_reference)
                found += _pair(_transform(m, n, sides, variant, dtype, backward=True), with_reference)
    return found


def _pair(make: Callable[..., Case], with_reference: bool) -> list[Case]:
    if not with_reference:
        return [make(reference=None, plain=False)]
    reference = make(reference=None, plain=True)
    return [reference, make(reference=reference, plain=False)]


def _case(
    operation: str,
    module,
    arguments: Callable[[str], Sequence],
    *,
    of_reference: Callable = tuple,
    written: Sequence[int] = (),
    **names,
) -> Callable[..., Case]:
    """A function that makes the case of an operator, or (``plain``) of its reference.

    ``arguments(device)`` are the operator's; ``of_reference`` makes its reference's of them. Those with the numbers
    ``written`` are changed in place, and results as well.
    """

    def make(*, reference: Case | None, plain: bool) -> Case:
        def build(device: str) -> Work:
            torch.manual_seed(0)
            given = arguments(device)
            operator, reference_function = getattr(module, operation), getattr(module, f"{operation}_reference")
            function = partial(reference_function, *of_reference(given)) if plain else partial(operator, *given)

            def error() -> float:
                wide = [a.double() if isinstance(a, Tensor) and a.is_floating_point() else a for a in given]
                found, exact = _tensors(function()), _tensors(reference_function(*of_reference(wide)))
                return relative_error(found + [given[i] for i in written], exact + [wide[i] for i in written])

            return Work(
                call=function,
                tensors=lambda: [a for a in given if isinstance(a, Tensor)],
                bytes=_traffic(_tensors(given), _tensors(function()) + [given[i] for i in written]),
                error=error,
            )

        # There is no other way to do it, so the operations are the reference's.
        ratio = (lambda: 1.0) if reference is not None or plain else None
        prefix = "reference " if plain else ""
        variant = f"{prefix}{names['variant']}".strip()
        rest = {key: value for key, value in names.items() if key != "variant"}
        return Case(
            operation=operation, build=build, variant=variant, reference=reference, plain=plain, predicted=ratio, **rest
        )

    return make


def _tensors(values) -> list[Tensor]:
    return [v for v in (values if isinstance(values, (tuple, list)) else (values,)) if isinstance(v, Tensor)]


def _traffic(given: Sequence[Tensor], results: Sequence[Tensor]) -> float:
    """Bytes of all operands and results: each read or written once."""
    return sum(t.numel() * t.element_size() for t in (*given, *results))


def relative_error(found, exact) -> float:
    """The largest ||found - exact|| / ||exact|| over the results of an operation, in fp64; NaN stays NaN."""
    errors = [
        ((f.double() - e).norm() / e.norm().clamp_min(torch.finfo(torch.float64).tiny)).item()
        for f, e in zip(_tensors(found), _tensors(exact), strict=True)
    ]
    return max(errors, key=lambda value: (value != value, value))


def _skew(operation: str, blocks: int, b: int, dtype: str):
    def arguments(device: str) -> tuple:
        if operation == "skew_unpack":
            return torch.randn(blocks, packed_size(b), device=device, dtype=DTYPES[dtype]), b
        return torch.randn(blocks, b, b, device=device, dtype=DTYPES[dtype]), True

    return _case(operation, skew, arguments, shape=f"{blocks}x{b}x{b}", dtype=dtype, variant="", count=lambda: 0)


def _map(operation: str, blocks: int, b: int, terms: int, dtype: str):
    def arguments(device: str) -> tuple:
        packed = torch.randn(blocks, packed_size(b), device=device) * (0.3 / b**0.5)
        q = skew.skew_unpack_reference(packed, b).to(DTYPES[dtype])  # spectral norm about 0.6, as in training at most
        if operation == "cayley_neumann":
            return q, terms
        return q, torch.randn(blocks, b, b, device=device, dtype=DTYPES[dtype]), terms

    flops = partial(getattr(operations, operation), blocks, b, terms)
    names = {"shape": f"{blocks}x{b}x{b}", "dtype": dtype, "variant": f"k={terms}", "count": flops}
    return _case(operation, maps, arguments, **names)


def _transform(m: int, n: int, sides, variant: str, dtype: str, *, backward: bool):
    def arguments(device: str) -> tuple:
        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, device=device, dtype=DTYPES[dtype])

        g_r, g_p = (draw(k, b, b) / b**0.5 if k else None for k, b in sides)
        weight = draw(n, m) / m**0.5
        order_out, order_in = (torch.randperm(size, device=device) for size in (n, m))
        if backward:
            return weight, g_r, g_p, draw(n, m), order_out, order_in, order_in.argsort()
        return weight, g_r, g_p, order_out, order_in, order_in.argsort()

    operation = "pull_back_and_build" if backward else "block_transform"
    flops = partial(getattr(operations, operation), m, n, *sides)
    names = {"shape": f"{m}x{n}", "dtype": dtype, "variant": variant, "count": flops}
    # The operator takes order_in for its derivative; the reference does without.
    of_reference = tuple if backward else lambda given: (*given[:4], given[5])
    written = (3,) if backward else ()
    return _case(operation, transforms, arguments, of_reference=of_reference, written=written, **names)
