"""The tuning protocol and the chosen learning rates, as tables for a page."""

from collections import Counter
from collections.abc import Mapping

from analyses.common.layout import markdown_table
from suite.tuning.protocol import Protocol, Trials

#: Columns of ``lr_sweep.csv`` that hold rates, with their names on a page.
RATES = {"lr": "lr", "matrix_lr": "matrices", "muon_lr": "matrices", "adapter_lr": "adapter", "poet_lr": "R and P"}


def protocol(given: Protocol) -> str:
    """The settings of ``config/tuning.yaml``, as sentences and a table of starting points."""
    budgets = [_trials(budget) + (f" for runs of {budget.from_steps:,} steps or more" if budget.from_steps > 1 else "") for budget in given.trials]
    larger = f"{_trials(given.larger_models)} if the search starts from the choice of a smaller model"
    shifts = [f"{RATES[name]} {k:+d} for the next longer length" for name, k in given.shifts.items()]
    body = [[f"`{row}`", _rates({name: f"{value:g}" for name, value in rates.items()})] for row, rates in given.starts.items()]
    lines = [
        f"- Seed of all trials: {given.seed}.",
        f"- Grid of all rates: {given.grid.base:g} × {given.grid.step:g}^k.",
        f"- Trials of each row: {'; '.join([*budgets, larger])}. While the best rate is at an end of what was tried, a search goes on, up to the higher number.",
        f"- Steps of the grid by which a start is moved: {'; '.join(shifts) or 'none'}.",
        f"- Orders of the ladder are tested with {', and again with '.join(map(str, given.looks))} seeds. A p-value is multiplied by the number of tests that its rows had.",
        "",
        markdown_table(["row or method", "first starting point"], "lr", body),
        "",
        "Changes since runs were seen:",
        "",
        *[f"- {change.date}: {change.what} Why: {change.why}" for change in given.changes],
    ]
    return "\n".join(lines)


def _trials(given: Trials) -> str:
    return str(given.trials) if given.at_most == given.trials else f"{given.trials}, or up to {given.at_most},"


def rates(sweeps: dict[str, list[dict[str, str]]]) -> str:
    """For each scale the chosen rates of each row, by model and length. A star marks a rate at an end of the tried grid."""
    return "\n\n".join(f"### {scale}\n\n{_chosen(sweep)}" for scale, sweep in sweeps.items())


def _chosen(sweep: list[dict[str, str]]) -> str:
    chosen = {(line["variant"], _place(line)): line for line in sweep if line["chosen"] == "yes"}
    at_end = sum(bool(line["at_grid_end"]) for line in chosen.values())
    poet = [line for (variant, _), line in chosen.items() if variant.startswith("poet")]
    said = (
        f"{len(chosen)} choices; {at_end} of them have a rate at an end of what was tried (\\*). "
        f"Of POET's {len(poet)}, {sum(bool(line['at_grid_end']) for line in poet)} have."
    )
    return f"{_by_row(sweep, {cell: _line(line) for cell, line in chosen.items()})}\n\n{said}"


def grids(sweeps: dict[str, list[dict[str, str]]]) -> str:
    """For each scale the number of trials of each row, by model and length."""
    tried = {scale: Counter((line["variant"], _place(line)) for line in sweep) for scale, sweep in sweeps.items()}
    return "\n\n".join(f"### {scale}, trials\n\n{_by_row(sweep, tried[scale])}" for scale, sweep in sweeps.items())


def _by_row(sweep: list[dict[str, str]], cells: Mapping[tuple[str, str], object]) -> str:
    """A table with a line for each row and a column for each model and length; a dash where there is no cell."""
    places, variants = (list(dict.fromkeys(map(key, sweep))) for key in (_place, lambda line: line["variant"]))
    body = [[f"`{v}`", *(str(cells[v, place]) if (v, place) in cells else "–" for place in places)] for v in variants]
    return markdown_table(["row", *places], "l" + "r" * len(places), body)


def _place(line: dict[str, str]) -> str:
    """The model, with the length of its runs if that is not 1."""
    return line["model"] if line.get("length", "1") == "1" else f"{line['model']} at {line['length']}"


def _line(line: dict[str, str]) -> str:
    at_end = line["at_grid_end"].split()
    return _rates({c: f"{float(line[c]):g}{chr(92) + '*' if c in at_end else ''}" for c in RATES if line.get(c)})


def _rates(shown: dict[str, str]) -> str:
    return next(iter(shown.values())) if len(shown) == 1 else "; ".join(f"{RATES[name]} {value}" for name, value in shown.items())
