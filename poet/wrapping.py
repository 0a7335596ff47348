"""Which layers of a model POET wraps, why it does not wrap the others, and the report of both."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Sequence

from torch import nn
from torch.nn.parameter import is_lazy

from poet.linear import POETLinear

WRAPPED = "wrapped"
EXCLUDED = "excluded"
#: GPT-2's linear layer, which stores its weight as (in, out).
CONV1D = "a Conv1D of transformers: put nn.Linear with the transposed weight in its place to train it with POET"


def wrapping_report(model: nn.Module) -> dict[str, str]:
    """What :func:`poet.apply_poet` did with each layer that has a matrix, by name: "wrapped", or the reason why it did not wrap it.

    ``apply_poet`` logs it (logger ``poet``, level INFO), and :func:`print_trainable_parameters` prints it. Layers that were added later read "excluded".
    """
    return {name: why or EXCLUDED for name, _, why in survey(model)}


def survey(model: nn.Module, exclude: Sequence[str] = ()) -> list[tuple[str, nn.Module, str]]:
    """(name, layer, reason why it is not wrapped) of every layer with a matrix; the reason is empty where ``apply_poet`` would wrap it."""
    owners = defaultdict(list)
    with_matrix = {module: names for module, names in _names(model).items() if any(is_lazy(p) or p.ndim > 1 for p in module.parameters(recurse=False))}
    for module, (name, *_) in with_matrix.items():
        for key, parameter in module.named_parameters(recurse=False):
            owners[id(parameter)].append(f"{name}.{key}".lstrip("."))
    return [(names[0], module, _why_left(names, module, exclude, owners)) for module, names in with_matrix.items()]


def _names(model: nn.Module) -> dict[nn.Module, list[str]]:
    """Every module's names: one that stands in several places has several."""
    found = defaultdict(list)
    for name, module in model.named_modules(remove_duplicate=False):
        found[module].append(name)
    return found


def _why_left(names: list[str], module: nn.Module, exclude: Sequence[str], owners: dict[int, list[str]]) -> str:
    kind = type(module).__name__
    if isinstance(module, POETLinear):
        return WRAPPED
    if any(is_named(name, entry) for name in names for entry in exclude):
        return EXCLUDED
    if type(module) is nn.Linear:
        others = [owner for owner in owners[id(module.weight)] if owner != f"{names[0]}.weight".lstrip(".")]
        return f"its weight is tied to {', '.join(others)}" if others else ""
    if isinstance(module, nn.Linear):
        return f"of type {kind}, which may use its weight in a way of its own"
    if kind == "Conv1D":
        return CONV1D
    return f"of type {kind}"


def is_named(name: str, entry: str) -> bool:
    """Whether an entry of ``exclude`` names this module or one that it is part of, in full or by the last parts of its name."""
    return f".{entry}." in f".{name}."


def check_exclude(model: nn.Module, exclude: Sequence[str]) -> None:
    """Raises ValueError where an entry of ``exclude`` names no module; the sentence has the nearest name."""
    names = [name for own in _names(model).values() for name in own if name]
    for entry in exclude:
        if not any(is_named(name, entry) for name in names):
            tails = {".".join(name.split(".")[-n:]) for name in names for n in range(1, name.count(".") + 2)}
            near = difflib.get_close_matches(entry, sorted(tails, key=len), n=1, cutoff=0.0)
            raise ValueError(f"exclude: no layer is called {entry!r}{f'; the nearest name is {near[0]!r}' if near else ''}")


def summary(report: dict[str, str]) -> str:
    """A :func:`wrapping_report` as text: for each reason a line with the number of layers and the first names."""
    by_reason = defaultdict(list)
    for name, why in report.items():
        by_reason[why].append(name or "(root)")
    lines = []
    for why, names in sorted(by_reason.items(), key=lambda item: item[0] != WRAPPED):
        listed = ", ".join(names[:2]) + (", ..." if len(names) > 2 else "")
        lines.append(f"{len(names)} {'layer' if len(names) == 1 else 'layers'} {'' if why == WRAPPED else 'left: '}{why} ({listed})")
    return "\n".join(lines)


def print_trainable_parameters(model: nn.Module) -> None:
    """Print the number of trainable parameters, in the format of ``peft``, and the :func:`wrapping_report`."""
    parameters = list(model.parameters())
    trained, total = (sum(p.numel() for p in chosen) for chosen in ([p for p in parameters if p.requires_grad], parameters))
    print(f"trainable params: {trained:,d} || all params: {total:,d} || trainable%: {100 * trained / max(total, 1):.4f}")
    print(summary(wrapping_report(model)))
