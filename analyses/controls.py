"""Controls that the paper lacks: where POET's advantage over AdamW comes from.

POET differs from the AdamW baseline in more than R and P. On each of the smaller models, beside AdamW and POET as in Table 2:

1. *Initialization.* AdamW on POET's normalized Gaussian weights, at the rate that was chosen for AdamW's own; on 60M, where
   the scale has a sweep, at every rate of AdamW's grid, with both initializations. The best of a grid is chosen with the
   same seeds that it is shown for, which flatters it a little; both initializations have that advantage.
2. *Two learning rates.* POET without R and P: embeddings, norms and head alone are trained, with POET's recipe and
   their own high rate, on weights that stay as they were drawn. What R and P add to that is POET's own part.
3. *Equal cost.* On 60M, AdamW's perplexity at the training time of POET, and at its operations, between AdamW's three whole
   runs of Figure 9 (``analyses.equal_cost``). Where POET's cost lies outside of theirs it would be extrapolation, and no
   number is given. Time is wall-clock, whatever else the machine did; evaluations along the way are part of it.

``gain`` is log(AdamW's perplexity) - log(this perplexity), in nats, the mean over pairs of one seed; AdamW's is the one at its
own rate and single length. ``gain_share`` divides it by POET-FS's gain, where that is positive.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analyses.ablation import perplexity_columns
from analyses.artifact import Artifact, Context
from analyses.equal_cost import COSTS, cost_lines, draw_cost
from analyses.figures import MARKERS, plain_logarithmic, save_figure
from analyses.longer import longer_runs
from analyses.published import read_published
from analyses.scale import Scale
from analyses.tables import write_csv
from poet.training.spec import RunSpec

MODELS = ("60m", "130m", "350m")
#: The model of the grids and of the comparison at equal cost.
SMALLEST = MODELS[0]
ADAMW, NORMALIZED, FROZEN, POET_FS, POET_BS = (
    "AdamW",
    "AdamW, normalized init",
    "POET without R and P",
    "POET FS b=1/2",
    "POET BS b=256",
)
#: Each control: a row, and what differs from it.
CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    ADAMW: ("adamw", {}),
    NORMALIZED: ("adamw", {"init": "normalized"}),
    FROZEN: ("poet-fs-1_2", {"budget_r": 0.0, "budget_p": 0.0}),
    POET_FS: ("poet-fs-1_2", {}),
    POET_BS: ("poet-bs-b256", {}),
}
#: Controls whose cost AdamW is given.
AT_EQUAL_COST = (POET_FS, POET_BS)
PERPLEXITY = "validation perplexity"


@dataclass(frozen=True, slots=True)
class Cell:
    """A control on a model.

    Attributes:
        model, control: its place; ``control`` is a key of :data:`CONTROLS`.
        own_rate: whether the learning rates are those of the row, not another of AdamW's grid.
        specs: one for each seed.
    """

    model: str
    control: str
    own_rate: bool
    specs: list[RunSpec]


def cells(scale: Scale) -> list[Cell]:
    """Every control on every model that the scale has."""
    found = []
    for model in (m for m in MODELS if m in scale.models):
        grid = scale.settings.get("sweep", {}).get("grids", {}).get(model, {}).get("adamw", {}).get("lr", []) if model == SMALLEST else []
        for control, (row, overrides) in CONTROLS.items():
            own = [scale.run(model, row, seed, overrides=overrides) for seed in scale.seeds]
            found.append(Cell(model, control, True, own))
            for lr in (r for r in grid if row == "adamw" and r != own[0].parameters["lr"]):
                found.append(Cell(model, control, False, [scale.run(model, row, seed, overrides={**overrides, "lr": lr}) for seed in scale.seeds]))
    return found


def runs(scale: Scale) -> list[RunSpec]:
    """The runs of all cells, and AdamW's longer ones."""
    longer = longer_runs(scale, SMALLEST).values()
    return [spec for specs in [*(cell.specs for cell in cells(scale)), *longer] for spec in specs]


def _perplexities(context: Context, specs: list[RunSpec]) -> list[float]:
    return [context.record(spec)["validation_perplexity"] for spec in specs]


def gain(baseline: list[float], values: list[float]) -> float:
    """Mean over seeds of log(baseline) - log(value), in nats; NaN if a run of either diverged."""
    return statistics.fmean(math.log(b) - math.log(v) for b, v in zip(baseline, values, strict=True))


def _controls(context: Context) -> list[dict[str, Any]]:
    printed = {(p.model, p.variant): float(p.perplexity) for p in read_published("table2").itertuples()}
    found = cells(context.scale)
    own = {(cell.model, cell.control): _perplexities(context, cell.specs) for cell in found if cell.own_rate}
    lines = []
    for cell in found:
        columns = perplexity_columns(context, cell.specs)
        baseline = own[cell.model, ADAMW]
        poet, here = gain(baseline, own[cell.model, POET_FS]), gain(baseline, _perplexities(context, cell.specs))
        lines.append(
            {
                "control": cell.control,
                "quantity": PERPLEXITY,
                "own_rate": "yes" if cell.own_rate else "no",
                "published": printed.get((cell.model, columns["variant"]), math.nan),
                **columns,
                "gain": here,
                "gain_share": here / poet if poet > 0 else math.nan,
            }
        )
    return lines


def table(context: Context) -> pd.DataFrame:
    """One line for each control (``quantity`` validation perplexity), then those of ``analyses.equal_cost``."""
    compared = {c.control: c.specs for c in cells(context.scale) if c.model == SMALLEST and c.control in AT_EQUAL_COST}
    frame = pd.DataFrame([*_controls(context), *cost_lines(context, SMALLEST, compared)])
    first = ["model", "control", "quantity", "learning_rates", "own_rate", "published", "measured", "n", "std", "diverged", "collapsed", "gain", "gain_share"]
    return frame[[*first, *(column for column in frame if column not in first)]].astype({"collapsed": "Int64"})


def answers(frame: pd.DataFrame) -> list[str]:
    """For each model: what of POET's advantage each control has."""
    lines = []
    chosen = frame[frame.quantity == PERPLEXITY]
    for model, part in chosen.groupby("model", sort=False):
        own = part[part.own_rate == "yes"].set_index("control")
        total = own.gain[POET_FS]
        if not total > 0:
            lines.append(f"{model}: POET-FS has no advantage over AdamW here ({total:+.3f} nats).")
            continue
        best = part[part.control == NORMALIZED].gain.max()
        grid = f" ({best:+.3f} at the best rate)" if best > own.gain[NORMALIZED] else ""
        lines.append(
            f"{model}: POET-FS is {total:.3f} nats below AdamW; normalized initialization alone brings {own.gain[NORMALIZED]:+.3f}{grid}, "
            f"embeddings, norms and head alone {own.gain[FROZEN]:+.3f} ({own.gain_share[FROZEN]:.0%}), R and P on top {total - own.gain[FROZEN]:+.3f}."
        )
    return lines


def _draw_controls(axis: Axes, part: pd.DataFrame, model: str) -> None:
    labels = list(CONTROLS)
    for y, label in enumerate(labels):
        own = part[(part.control == label) & (part.own_rate == "yes")]
        others = part[(part.control == label) & (part.own_rate == "no")]
        axis.plot(others.measured, [y] * len(others), marker="o", linestyle="", markersize=5, fillstyle="none", color=f"C{y}")
        axis.errorbar(own.measured, [y] * len(own), xerr=own["std"].fillna(0), marker=MARKERS[y], linestyle="", markersize=9, capsize=3, color=f"C{y}")
        for line in own.itertuples():
            axis.annotate(f"{line.measured:.1f}" if not line.diverged else "diverged", (line.measured, y), xytext=(0, 9), textcoords="offset points", ha="center", fontsize="small", bbox={"color": "white", "pad": 0.5})
    reference = part[(part.control == ADAMW) & (part.own_rate == "yes")].measured.iloc[0]
    axis.axvline(reference, color="black", linewidth=0.8, linestyle="--", zorder=0)
    axis.set(title=model, xlabel="validation perplexity", xscale="log", yticks=range(len(labels)), yticklabels=labels, ylim=(len(labels) - 0.5, -0.7))
    plain_logarithmic(axis.xaxis)
    axis.margins(x=0.15)


def draw(frame: pd.DataFrame) -> Figure:
    """Above: the controls on each model. Below: AdamW and POET over what their runs cost."""
    chosen = frame[frame.quantity == PERPLEXITY]
    models = list(dict.fromkeys(chosen.model))
    figure = plt.figure(figsize=(3.6 * max(3, len(models)), 7.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1))
    for index, (axis, model) in enumerate(zip(above.subplots(1, len(models), squeeze=False)[0], models, strict=True)):
        _draw_controls(axis, chosen[chosen.model == model], model)
        if index:
            axis.set_yticklabels([])
    styles = {label: list(CONTROLS).index(label) for label in AT_EQUAL_COST}
    for axis, cost in zip(below.subplots(1, len(COSTS)), COSTS, strict=True):
        draw_cost(axis, frame, cost, styles)
    return figure


def build(context: Context) -> None:
    frame = table(context)
    write_csv(frame, context.results / "controls.csv")
    save_figure(draw(frame), context, ARTIFACT, " ".join(answers(frame)) + " Small hollow markers above: other rates of AdamW's grid; below: AdamW at POET's cost.")


ARTIFACT = Artifact(
    label="Controls (not in the paper)",
    caption="What AdamW gains from POET's initialization, what POET has without R and P, and AdamW at POET's cost.",
    outputs=("controls.csv", "figures/controls.png", "figures/controls.pdf"),
    runs=runs,
    build=build,
    models=(SMALLEST,),
)
