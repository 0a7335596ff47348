"""The training steps that Table 11 times: the designs, the model they run on, and the clock."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import nn

from analyses.common.paper_scale import paper_scale
from analyses.common.timing import in_turn, wall_clock
from analyses.tables.table11.plain_poet import apply_plain_poet
from poet.config import POETConfig
from poet.methods.contract import adamw
from poet.model import apply_poet
from poet.system.errors import UserError
from poet.training.llama import build_llama
from poet.training.spec import Architecture
from suite.scale import Scale

MODEL, ROW = "1.3b", "poet-bs-b256"
#: (divisor of widths and tokens, layers, rounds) by scale; other scales have :data:`FULL`, which needs a GPU.
PROXIES = {"smoke": (16, 1, 2), "mini": (4, 1, 5), "night": (4, 1, 5)}
FULL = (1, 2, 20)
#: Designs of each variant, each with one more change than the one before.
DESIGNS = {
    "plain": {"terms": None, "packed": False},
    "Neumann": {"terms": 3, "packed": False},
    "packed": {"terms": 3, "packed": True},
}
BASELINE, OWN = "AdamW", "suite"


def proxy(scale: Scale) -> tuple[Architecture, int, int, int]:
    """(architecture, rows of a micro-batch, divisor of the paper's widths, rounds) at a scale."""
    divisor, layers, rounds = PROXIES.get(scale.name, FULL)
    spec = paper_scale().run(MODEL, ROW, 0)
    full = spec.architecture
    architecture = replace(
        full, hidden_size=full.hidden_size // divisor, intermediate_size=full.intermediate_size // divisor,
        heads=full.heads // divisor, layers=layers, vocabulary=scale.settings.vocabulary,
    )
    return architecture, spec.batch_rows // spec.accumulation // divisor, divisor, rounds


def configurations(divisor: int) -> dict[str, POETConfig]:
    """The two variants, with blocks that are the same share of the widths as the paper's."""
    never = {"merge_every": 10**9, "init": "keep"}
    return {
        "FS b=1/2": POETConfig(variant="fs", budget=0.5, **never),
        f"BS b={256 // divisor}": POETConfig(variant="bs", block_size=256 // divisor, **never),
    }


def models(architecture: Architecture, divisor: int) -> Iterator[tuple[str, nn.Module]]:
    """("variant, design", model) of every design; AdamW's is :data:`BASELINE`."""
    yield BASELINE, build_llama(architecture, seed=0)
    for variant, config in configurations(divisor).items():
        for design, options in DESIGNS.items():
            yield f"{variant}, {design}", apply_plain_poet(build_llama(architecture, seed=0), config, seed=0, **options)
        yield f"{variant}, {OWN}", apply_poet(build_llama(architecture, seed=0), config, generator=torch.Generator().manual_seed(0))


def step_of(model: nn.Module, rows: torch.Tensor, precision: str) -> Callable[[], None]:
    """A function that does one training step of a model on ``rows``, (rows, tokens) int64."""
    device = rows.device.type
    model = model.to(device).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = adamw(trained, lr=1e-4, weight_decay=0.01)

    def step() -> None:
        with torch.autocast(device, dtype=torch.bfloat16) if precision == "bf16" else contextlib.nullcontext():
            loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 0.1)
        optimizer.step()
        optimizer.zero_grad()

    return step


def measure(scale: Scale) -> dict[str, list[float]]:
    """Seconds of a step of every design, by round.

    Raises:
        UserError: the scale is one for GPUs, and there is none.
    """
    device = "cuda" if scale.settings.resources.gpus else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"table11 at scale {scale.name} times a GPU, and torch finds none: choose another scale")
    architecture, count, divisor, rounds = proxy(scale)
    shape = (count, architecture.sequence_length)
    rows = torch.randint(1, architecture.vocabulary, shape, generator=torch.Generator().manual_seed(0)).to(device)
    steps = {name: step_of(model, rows, scale.settings.training.precision) for name, model in models(architecture, divisor)}
    for step in steps.values():
        step()  # warm-up: makes the optimizer's state and compiles kernels
    return in_turn(steps, rounds, finished_clock if device == "cuda" else wall_clock)


def finished_clock(call: Callable[[], object]) -> float:
    """Seconds until a GPU has finished a call."""
    torch.cuda.synchronize()
    return wall_clock(lambda: (call(), torch.cuda.synchronize()))
