"""Cases of single layers, forward and backward: nn.Linear, the plain case, and POETLinear."""

from collections.abc import Iterable

import torch
from torch import nn

from benchmarks.case import DTYPES, Case, Work
from poet import POETConfig, POETLinear

#: (inputs, outputs) of the paper's feed-forward matrices, and a far larger one.
SHAPES = ((512, 1280), (512, 1376), (1024, 2816), (2048, 5376), (4096, 14336))
TOKENS = (256, 1024, 2048, 8192, 16384, 65536)
BLOCK_SIZES = (64, 128, 256, 512, 1024)
BUDGETS = (8, 4, 2)


def configurations(m: int, n: int, block_sizes: Iterable[int], budgets: Iterable[int]) -> dict[str, POETConfig]:
    """POET-BS with each block size that divides both dimensions, and POET-FS with each b = 1/budget, by row name."""
    dividing = [b for b in block_sizes if m % b == n % b == 0]
    blocks = {f"poet-bs-b{b}": POETConfig(variant="bs", block_size=b, init="keep") for b in dividing}
    return blocks | {f"poet-fs-1_{d}": POETConfig(variant="fs", budget=1 / d, init="keep") for d in budgets}


def layer_cases(
    shapes: Iterable[tuple[int, int]] = SHAPES, tokens: Iterable[int] = TOKENS, dtypes: Iterable[str] = ("fp32",),
    block_sizes: Iterable[int] = BLOCK_SIZES, budgets: Iterable[int] = BUDGETS,
) -> list[Case]:
    """Every layer at every number of tokens; each plain case is followed by the cases that are compared with it."""
    found = []
    for dtype in dtypes:
        for m, n in shapes:
            for count in tokens:
                # A call of a tenth of a second or more on a CPU has only three rounds.
                rounds = 3 if 6 * count * m * n > 1.5e10 else 5
                common = {"operation": "layer", "shape": f"{m}x{n}", "tokens": count, "dtype": dtype, "least_rounds": rounds}
                plain = Case(**common, variant="linear", build=_build(m, n, count, dtype, None), plain=True)
                found.append(plain)
                for variant, config in configurations(m, n, block_sizes, budgets).items():
                    build = _build(m, n, count, dtype, config)
                    found.append(Case(**common, variant=variant, build=build, reference=plain))
    return found


def _build(m: int, n: int, count: int, dtype: str, config: POETConfig | None):
    def build(device: str) -> Work:
        torch.manual_seed(0)
        place = {"device": device, "dtype": DTYPES[dtype]}
        weight = torch.randn(n, m, **place) / m**0.5
        if config is None:
            layer = nn.Linear(m, n, bias=False, **place)
            with torch.no_grad():
                layer.weight.copy_(weight)
        else:
            layer = POETLinear(m, n, config, weight=weight, generator=torch.Generator().manual_seed(0), **place)
            with torch.no_grad():
                for skew in layer.parameters():
                    skew.normal_(std=0.01)
        del weight
        x, grad = torch.randn(count, m, **place).requires_grad_(), torch.randn(count, n, **place)

        def call() -> None:
            layer(x).backward(grad)
            x.grad = None
            for parameter in layer.parameters():
                parameter.grad = None

        def tensors():
            return [*layer.parameters(), *layer.buffers(), x, grad]

        return Work(call, tensors)

    return build
