"""Table 11: what the Neumann approximation, the skew-symmetric kernel and everything together gain in time.

The baseline is a plain reading of the paper (:mod:`analyses.plain_poet`). Designs are added to it one after another, as
the printed rows are read here, and the suite's own path comes last:

- plain: a full matrix for each Q, a linear solve for the Cayley map, dense R and P, R W0 P in every layer;
- Neumann: the same with k = 3 terms of the Neumann series instead of the solve;
- packed: the same with the strictly upper triangle stored, and unpacked by the suite's operator;
- suite: ``poet.apply_poet``.

The paper does not say which variant it timed, nor what its total has beside the two designs, whose product is 1.95
(``errata.md``). So both variants are timed, and the printed total stands beside plain over suite.

What is timed is a training step (forward, backward, clipping, AdamW) of a model with the shapes of the 1.3B model's
layers and the tokens of its micro-batch, both divided by the same number at small scales, so that tokens per width
stay the paper's. Merges are left out: one in 400 steps. All designs are timed in turn and compared round by round,
because other jobs of the pipeline may run beside this one: ``measured`` is the median of the ratios, ``n`` their
number, ``std`` their standard deviation, ``low`` and ``high`` the 20th and 80th percentile. No two runs give the same
digits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import torch
from torch import nn

from analyses.artifact import Artifact, Context
from analyses.config_tables import paper_scale
from analyses.plain_poet import apply_plain_poet
from analyses.published import read_published
from analyses.scale import Scale
from analyses.tables import write_csv
from analyses.timing import Spread, in_turn, ratios, wall_clock
from poet.config import POETConfig
from poet.errors import UserError
from poet.files import write_text
from poet.methods.contract import adamw
from poet.model import apply_poet
from poet.training.llama import build_llama
from poet.training.spec import Architecture

MODEL, ROW = "1.3b", "poet-bs-b256"
#: (divisor of widths and tokens, layers, rounds) by scale; at the full width everywhere else, which takes a GPU.
PROXIES = {"smoke": (16, 1, 2), "mini": (4, 1, 5)}
FULL = (1, 2, 20)
#: Designs of each variant, in the order in which they are added up.
DESIGNS = {
    "plain": {"terms": None, "packed": False},
    "Neumann": {"terms": 3, "packed": False},
    "packed": {"terms": 3, "packed": True},
}
BASELINE, OWN = "AdamW", "suite"
#: Speed-up -> (slower, faster) design.
SPEED_UPS = {
    "Neumann approximation": ("plain", "Neumann"),
    "Skew-symmetric CUDA kernel": ("Neumann", "packed"),
    "Both": ("plain", "packed"),
    "The suite's own path": ("packed", OWN),
    "Total": ("plain", OWN),
}


def proxy(scale: Scale) -> tuple[Architecture, int, int, int]:
    """(architecture, rows of a micro-batch, divisor of the paper's widths, rounds) at a scale."""
    divisor, layers, rounds = PROXIES.get(scale.name, FULL)
    spec = paper_scale().run(MODEL, ROW, 0)
    full = spec.architecture
    architecture = replace(
        full,
        hidden_size=full.hidden_size // divisor,
        intermediate_size=full.intermediate_size // divisor,
        heads=full.heads // divisor,
        layers=layers,
        vocabulary=scale.settings["vocabulary"],
    )
    return architecture, spec.batch_rows // spec.accumulation // divisor, divisor, rounds


def configurations(divisor: int) -> dict[str, POETConfig]:
    """The two variants, with blocks that are the same share of the widths as the paper's."""
    never = {"merge_every": 10**9, "init": "keep"}
    return {
        "FS b=1/2": POETConfig(variant="fs", budget=0.5, **never),
        f"BS b={256 // divisor}": POETConfig(variant="bs", block_size=256 // divisor, **never),
    }


def designs(architecture: Architecture, divisor: int) -> dict[str, Callable[[], nn.Module]]:
    """Models by "variant, design"; AdamW's has the name of :data:`BASELINE`."""
    found: dict[str, Callable[[], nn.Module]] = {BASELINE: lambda: build_llama(architecture, seed=0)}
    for variant, config in configurations(divisor).items():
        for design, options in DESIGNS.items():
            found[f"{variant}, {design}"] = lambda config=config, options=options: apply_plain_poet(
                build_llama(architecture, seed=0), config, seed=0, **options
            )
        found[f"{variant}, {OWN}"] = lambda config=config: apply_poet(
            build_llama(architecture, seed=0), config, generator=torch.Generator().manual_seed(0)
        )
    return found


def step_of(model: nn.Module, rows: torch.Tensor, precision: str) -> Callable[[], None]:
    """A training step of a model, as a function to be timed."""
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
    device = "cuda" if scale.settings["resources"]["gpus"] else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"table11 at scale {scale.name} times a GPU, and torch finds none: choose another scale")
    architecture, count, divisor, rounds = proxy(scale)
    generator = torch.Generator().manual_seed(0)
    shape = (count, architecture.sequence_length)
    rows = torch.randint(1, architecture.vocabulary, shape, generator=generator).to(device)
    precision = scale.settings["training"]["precision"]
    steps = {name: step_of(make(), rows, precision) for name, make in designs(architecture, divisor).items()}
    for step in steps.values():
        step()  # the optimizer's state is made, kernels are compiled
    return in_turn(steps, rounds, finished_clock if device == "cuda" else wall_clock)


def finished_clock(call: Callable[[], object]) -> float:
    """Seconds until a GPU has finished a call."""
    torch.cuda.synchronize()

    def finished() -> None:
        call()
        torch.cuda.synchronize()

    return wall_clock(finished)


def table(scale: Scale, times: dict[str, list[float]]) -> pd.DataFrame:
    """Speed-ups of each variant, the cost beside AdamW, and the seconds behind them."""
    printed = {line.design: float(line.speed_up) for line in read_published("table11").itertuples()}
    architecture, count, divisor, _ = proxy(scale)
    where = {
        "device": torch.cuda.get_device_name() if scale.settings["resources"]["gpus"] else "CPU",
        "threads": torch.get_num_threads(),
        "hidden_size": architecture.hidden_size,
        "intermediate_size": architecture.intermediate_size,
        "layers": architecture.layers,
        "tokens": count * architecture.sequence_length,
        "scale": scale.name,
    }

    def line(variant: str, quantity: str, of: str, values: list[float], unit: str) -> dict:
        spread = Spread.of(values)
        return {
            "variant": variant,
            "quantity": quantity,
            "of": of,
            "published": printed.get(quantity, float("nan")),
            "measured": spread.median,
            "n": spread.n,
            "std": spread.std,
            "low": spread.low,
            "high": spread.high,
            "unit": unit,
            **where,
        }

    lines = [line("", "seconds of a step", BASELINE, times[BASELINE], "s")]
    for variant in configurations(divisor):
        own = {design: times[f"{variant}, {design}"] for design in (*DESIGNS, OWN)}
        for name, (slower, faster) in SPEED_UPS.items():
            lines.append(line(variant, name, f"{slower} / {faster}", ratios(own[slower], own[faster]), "times faster"))
        beside = ratios(own[OWN], times[BASELINE])
        lines.append(line(variant, "Time beside AdamW", f"{OWN} / {BASELINE}", beside, "times as long"))
        lines += [line(variant, "seconds of a step", design, seconds, "s") for design, seconds in own.items()]
    return pd.DataFrame(lines)


def markdown(frame: pd.DataFrame) -> str:
    """As the paper lays it out: designs down; published, then each variant."""
    shown = frame[frame.unit != "s"]
    variants = list(dict.fromkeys(shown.variant))
    lines = [f"# {ARTIFACT.label}, {frame['scale'].iloc[0]} scale", "", explanation(frame), ""]
    lines.append("| Design | compared | published | " + " | ".join(variants) + " |")
    lines.append("| --- | --- | ---: |" + " ---: |" * len(variants))
    for quantity, part in shown.groupby("quantity", sort=False):
        published = "–" if part.published.isna().iloc[0] else f"{part.published.iloc[0]:g}"
        cells = [f"{line.measured:.2f} ({line.low:.2f} to {line.high:.2f})" for line in part.itertuples()]
        lines.append("| " + " | ".join([quantity, part.of.iloc[0], published, *cells]) + " |")
    return "\n".join([*lines, ""])


def explanation(frame: pd.DataFrame) -> str:
    """What was measured, on what, and what it is not."""
    line = frame.iloc[0]
    proxied = "A proxy on a CPU: it says nothing of H100s. " if line.device == "CPU" else ""
    return (
        f"{ARTIFACT.label}. {ARTIFACT.caption} {proxied}Published: the 1.3B model on a node of 8 H100. Measured: a "
        f"training step of {_count(line.layers, 'decoder layer')} ({line.hidden_size} wide, d_ff "
        f"{line.intermediate_size}), {line.tokens:,} tokens, {line.device}, {_count(line.threads, 'thread')}; "
        f"median of {line.n} ratios of steps timed in turn, 20th to 80th percentile in brackets. "
        f"Times differ from run to run. Scale: {line.scale}."
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def build(context: Context) -> None:
    frame = table(context.scale, measure(context.scale))
    write_csv(frame, context.results / "table11.csv")
    write_text(context.results / "table11.md", markdown(frame))


ARTIFACT = Artifact(
    label="Table 11",
    caption=(
        "Speed-up of the Neumann approximation, of the skew-symmetric kernel, and in all, against a plain reading of "
        "the paper."
    ),
    outputs=("table11.csv", "table11.md"),
    runs=lambda scale: [],
    build=build,
)
