"""AdamW at the cost of another method's run: by wall-clock and by operations.

AdamW's whole runs of several lengths (``longer_runs`` in ``analyses.common.grid``), each with its own learning-rate schedule, give its perplexity
as a function of the cost of a run. Between the runs, the logarithm of perplexity is linear in the logarithm of the cost.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import EngFormatter

from analyses.common.ablation import perplexity_columns
from analyses.common.evidence import perplexities
from analyses.common.grid import longer_runs
from analyses.common.layout import measured_columns
from analyses.common.looks import look
from analyses.common.plotting import Axes, bars, plain_logarithmic
from poet.launch.operations import operations_per_step
from poet.training.spec import RunSpec
from suite.context import Context

#: Costs by which runs are made equal, and their units. Operations are those of matrix products.
TIME, OPERATIONS = "training time", "operations"
COSTS = {TIME: "s", OPERATIONS: "FLOP"}
#: The quantity of a line: of a group of runs, and of AdamW interpolated between its runs.
OWN, EQUAL = "validation perplexity and {cost}", "validation perplexity at equal {cost}"


def timed_alike(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether training times compare methods: one commit trained all runs on one kind of machine and device. Other load is not seen, and alike machines count as one."""
    first, *others = ({name: record["provenance"].get(name) for name in ("commit", "machine", "cpu_capability", "device", "devices")} for record in records)
    return all(other == first for other in others)


def costs_of(context: Context, specs: Sequence[RunSpec]) -> dict[str, list[float]]:
    """What runs of one setting cost, one number for each seed, by the names of :data:`COSTS`."""
    seconds = [context.record(spec)["cost"]["train_seconds"] for spec in specs]
    return {TIME: seconds, OPERATIONS: [specs[0].steps * operations_per_step(specs[0])] * len(specs)}


def perplexity_at(cost: float, costs: Sequence[float], perplexities: Sequence[float]) -> float:
    """Perplexity at a cost, interpolated between runs in any order (a longer run may take less time).

    NaN outside the runs' costs: that would be extrapolation."""
    costs, perplexities = zip(*sorted(zip(costs, perplexities, strict=True)), strict=True)
    if not costs[0] <= cost <= costs[-1]:
        return math.nan
    return float(np.exp(np.interp(np.log(cost), np.log(costs), np.log(perplexities))))


def cost_lines(context: Context, model: str, compared: Mapping[str, Sequence[RunSpec]]) -> list[dict[str, Any]]:
    """Lines of a tidy table: AdamW's runs and the compared runs with their costs, and AdamW at the costs of the compared runs.

    ``compared`` has runs by name, one for each seed. Training time has lines only where the runs were :func:`timed_alike`."""
    adamw = {f"AdamW, {factor}x steps": specs for factor, specs in longer_runs(context.scale, model).items()}
    costs = {label: costs_of(context, specs) for label, specs in {**adamw, **compared}.items()}
    columns = {label: perplexity_columns(context, specs) for label, specs in {**adamw, **compared}.items()}
    values = {label: perplexities(context, specs) for label, specs in adamw.items()}
    lines = []
    alike = timed_alike([context.record(spec) for specs in (*adamw.values(), *compared.values()) for spec in specs])
    for cost, unit in COSTS.items():
        if cost == TIME and not alike:
            continue
        for label, own in columns.items():
            lines.append({
                "control": label, "quantity": OWN.format(cost=cost), **own,
                "cost": statistics.fmean(costs[label][cost]), "cost_unit": unit,
            })
        for label in compared:
            spent = costs[label][cost]
            found = [
                perplexity_at(at, [costs[a][cost][i] for a in adamw], [values[a][i] for a in adamw])
                for i, at in enumerate(spent)
            ]
            missing = sum(map(math.isnan, found))
            note = f"no number for {missing} of {len(found)} seeds: it would be extrapolation"
            diverged = sum(math.isnan(sum(values[a][i] for a in adamw)) for i in range(len(spent)))
            lines.append({
                **{key: columns[label][key] for key in ("model", "unit", "scale", "corpus", "seeds")},
                "control": f"AdamW at the {cost} of {label}", "quantity": EQUAL.format(cost=cost),
                **measured_columns(found), "diverged": diverged,  # a cost outside of AdamW's is no divergence
                "cost": statistics.fmean(spent), "cost_unit": unit, "note": note if missing > diverged else "",
            })
    return lines


def draw_cost(axis: Axes, frame: pd.DataFrame, cost: str, looks: Mapping[str, Mapping[str, Any]], title: str) -> None:
    """Perplexity over cost: AdamW's runs joined, the compared ones as points, and the gap at equal cost dotted.

    ``looks`` has how each compared run is drawn."""
    part = frame[frame.quantity == OWN.format(cost=cost)]
    compared = part.control.isin(looks)
    adamw = part[~compared]
    axis.errorbar(
        adamw.cost, adamw.measured, bars(adamw["std"]), capsize=3, **look("adamw"),
        label="AdamW, 1x, 2x, 3x steps",
    )
    for line in part[compared].itertuples():
        drawn = {**looks[line.control], "linestyle": ""}
        axis.errorbar(line.cost, line.measured, bars(pd.Series([line.std])), **drawn, capsize=3, markersize=9, label=line.control)
        equal = frame[(frame.quantity == EQUAL.format(cost=cost)) & (frame.cost == line.cost)].measured.iloc[0]
        axis.plot([line.cost] * 2, [line.measured, equal], linestyle=":", color="black", linewidth=1)
        axis.plot(line.cost, equal, marker="s", linestyle="", fillstyle="none", color="black")
    axis.set(
        title=f"{title}: AdamW at equal {cost}", xlabel=f"{cost} of a whole run",
        ylabel="validation perplexity", xscale="log", yscale="log",
    )
    plain_logarithmic(axis.xaxis, most=3)  # numbers with units are long
    axis.xaxis.set_major_formatter(EngFormatter(COSTS[cost]))
    plain_logarithmic(axis.yaxis)
    axis.legend(fontsize="small")
