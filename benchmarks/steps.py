"""Cases of whole training steps: forward, backward, clipping, optimizer, and the share of periodic work."""

import contextlib
import functools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

import torch
from torch import nn

from benchmarks.case import Case, Periodic, Work
from poet.launch.operations import operations_per_step
from poet.methods import all_rows
from poet.methods.contract import is_counted, parse_parameters
from poet.training.llama import build_llama
from poet.training.spec import Architecture, RunSpec
from suite.scale import Scale, load_scale

#: Most operations of a POET or AdamW step that is timed on a CPU: about twenty seconds on two cores.
CPU_FLOPS = 2.6e12
#: Rows of the method registry. The suite promises a speed of the first two alone.
ROWS = ("poet-fs-1_2", "poet-bs-b256", "galore", "lora-r64", "muon")
PLAIN = "adamw"
#: Suffix of the variant of a step that is launched as one CUDA graph.
GRAPH = "-graph"


def step_cases(
    scale: str, models: Iterable[str], tokens: Iterable[int], *, rows: Iterable[str] = ROWS, dtype: str = "fp32",
    threads: int | None = None, graphs: bool = False,
) -> list[Case]:
    """Training steps of a scale's models, each against AdamW on the same model (rows differ in the feed-forward width).

    A step has one micro-batch. "bf16" is autocast over fp32 parameters; ``threads`` as in :class:`Case`. With ``graphs``
    (a GPU only) the steps of AdamW and POET are also timed as CUDA graphs, against AdamW as a graph."""
    loaded, found = load_scale({"scale": scale, "seeds": [0]}), []
    for model in models:
        for count in tokens:
            by_architecture: dict[Architecture, list[RunSpec]] = {}
            for row in rows:
                spec = _spec(loaded, model, row, count, dtype)
                by_architecture.setdefault(spec.architecture, []).append(spec)
            for architecture, specs in by_architecture.items():
                plain = replace(_spec(loaded, model, PLAIN, count, dtype), architecture=architecture)
                found += _group(plain, specs, count, threads)
                if graphs:
                    found += _group(plain, [spec for spec in specs if spec.method == "poet"], count, threads, graph=True)
    return found


def _spec(scale: Scale, model: str, row: str, tokens: int, dtype: str) -> RunSpec:
    """The run whose step is timed. Its length is one merge period, so that its operations include one merge."""
    spec = scale.run(model, row, 0)
    rows, steps = tokens // spec.architecture.sequence_length, spec.parameters.get("merge_every", 1)
    return replace(spec, batch_rows=rows, accumulation=1, steps=steps, precision=dtype)


def _group(plain_spec: RunSpec, specs: list[RunSpec], tokens: int, threads: int | None, graph: bool = False) -> list[Case]:
    """The cases of AdamW and of the rows that are compared with it on one model; with ``graph``, all as CUDA graphs."""
    model = plain_spec.model if plain_spec.scale == "paper" else f"{plain_spec.scale}-{plain_spec.model}"
    shape = f"{model}-ff{plain_spec.architecture.intermediate_size}"
    common = {"operation": "step", "shape": shape, "tokens": tokens, "dtype": plain_spec.precision, "threads": threads}
    # A step of many tokens takes many seconds on a CPU: only POET and AdamW are timed there. POET's ratio is promised to a
    # few per cent, and in a virtual machine a single pair of steps is off by as much: hence nine rounds.
    long = tokens > 4096
    plain = Case(
        **common, variant=PLAIN + GRAPH * graph, count=functools.cache(functools.partial(_flops, plain_spec)),
        build=_build(plain_spec, graph=graph), plain=True, least_rounds=2 if long else 3, cpu_flops=CPU_FLOPS,
    )  # fmt: skip
    found = [plain]
    for spec in specs:
        promised = spec.method == "poet"
        found.append(
            Case(
                **common, variant=spec.variant + GRAPH * graph, count=functools.cache(functools.partial(_flops, spec)),
                build=_build(spec, graph=graph), reference=plain, needs="peft" if spec.method == "lora" else None,
                least_rounds=(9 if long else 5) if promised else 3, cpu_flops=CPU_FLOPS if promised else CPU_FLOPS / 2,
            )  # fmt: skip
        )
    return found


def _flops(spec: RunSpec) -> float:
    """Operations of a step: those of its run, and the products in the optimizer.

    LoRA's are counted by formula, since its package may be missing: AdamW's step without the gradients of the frozen matrices, and all
    adapters, forward and backward.
    """
    model = build_llama(spec.architecture, device="meta")
    shapes = [tuple(p.shape) for name, p in model.named_parameters() if is_counted(name)]
    if spec.method == "lora":
        tokens, rank = spec.tokens / spec.steps, spec.parameters["rank"]
        plain = operations_per_step(replace(spec, method="adamw", parameters={}))
        return plain + sum(tokens * (6 * rank * (n + m) - 2 * n * m) for n, m in shapes)
    total = operations_per_step(spec)
    if spec.method == "muon":
        total += newton_schulz(shapes, spec.parameters["newton_schulz_steps"])
    if spec.method == "galore":
        total += low_rank_projections(shapes, spec.parameters["rank"])
    return total


def newton_schulz(shapes: Sequence[tuple[int, int]], steps: int) -> int:
    """Operations of Muon's iteration on matrices (n, m): X X^T, its square, and their product with X, ``steps`` times."""
    return sum(steps * (4 * min(s) ** 2 * max(s) + 2 * min(s) ** 3) for s in shapes)


def low_rank_projections(shapes: Sequence[tuple[int, int]], rank: int) -> int:
    """Operations of GaLore's projection of each gradient to the subspace, and of each update back."""
    return sum(4 * rank * n * m for n, m in shapes)


def _build(spec: RunSpec, *, graph: bool = False):
    def build(device: str) -> Work:
        method = all_rows()[spec.variant][0]
        instance = method(parse_parameters(method, spec.parameters), weight_decay=spec.weight_decay)
        model = instance.prepare(build_llama(spec.architecture, seed=0), seed=0).to(device).train()
        optimizers = instance.optimizers(model)
        trained = [p for p in model.parameters() if p.requires_grad]
        generator = torch.Generator().manual_seed(0)
        architecture = spec.architecture
        shape = (spec.batch_rows, architecture.sequence_length)
        rows = torch.randint(1, architecture.vocabulary, shape, generator=generator).to(device)
        bf16 = spec.precision == "bf16"

        def backward(batch: torch.Tensor = rows) -> None:
            with torch.autocast(device, dtype=torch.bfloat16) if bf16 else contextlib.nullcontext():
                loss = model(input_ids=batch, labels=batch).loss
            loss.backward()

        def update() -> None:
            nn.utils.clip_grad_norm_(trained, instance.clip_norm(0, spec.clip_norm))
            for optimizer in optimizers:
                optimizer.step()

        def clear() -> None:
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)

        def call() -> None:
            backward()
            update()
            clear()

        def state() -> list[torch.Tensor]:
            entries = (s for optimizer in optimizers for s in optimizer.state.values())
            return [v for entry in entries for v in entry.values() if isinstance(v, torch.Tensor)]

        def tensors() -> list[torch.Tensor]:
            return [*model.parameters(), *model.buffers(), *state(), rows]

        backward(rows[:1])  # one short step, which makes the optimizer's state: it counts as held memory
        update()
        clear()
        step = _captured(call, optimizers) if graph else call
        return Work(step, tensors, periodic=_periodic(spec, instance, optimizers, step, backward, update, clear))

    return build


def _captured(call, optimizers):
    """A step with AdamW as its optimizer, as a CUDA graph: the same kernels, which the host launches in one call.

    A merge writes in place, so that a replay after the merge reads the new values."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["capturable"] = True
        for state in optimizer.state.values():
            state["step"] = state["step"].cuda()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # compile kernels and set up libraries before the capture
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def _periodic(spec: RunSpec, instance, optimizers, call, backward, update, clear) -> Periodic | None:
    """The periodic work of a step: POET's merge, or GaLore's renewal of its projectors; None for other methods."""
    parameters = asdict(instance.parameters)
    if spec.method == "poet":
        every = parameters["merge_every"]
        # The step after a merge costs more or less than others: its small layers are at the identity.
        return Periodic(lambda: instance.after_step(every - 1), every, prepare=clear, then=call)
    if spec.method != "galore":
        return None

    def renew() -> None:
        # The time includes an ordinary optimizer step: small beside the decompositions, and divided by the period as they are.
        for group in optimizers[0].param_groups:
            group["refresh_every"] = 1
        update()
        for group in optimizers[0].param_groups:
            group["refresh_every"] = parameters["refresh_every"]
        clear()

    return Periodic(renew, parameters["refresh_every"], prepare=backward)
