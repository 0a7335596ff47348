"""Controls that the paper lacks: where POET's advantage over AdamW comes from.

POET differs from the AdamW baseline in more than R and P. On each of the smaller models, beside AdamW and POET as in Table 2:

1. *Initialization.* AdamW on POET's normalized Gaussian weights, at the rate that was chosen for AdamW's own initialization. Unit-norm
   rows may want a larger rate. So on 60M, where the scale has a sweep, both initializations are trained at other rates as well
   (:func:`analyses.controls.cells.other_rates`). The best rate is chosen on the seeds that it is shown for, which flatters both alike.
2. *Two learning rates.* POET trains embeddings, norms and head at a rate of their own. So does this AdamW. Where the scale tuned it, it
   has its own rates. Elsewhere it takes POET's rate for embeddings, norms and head, and AdamW's for the matrices.
3. *Embeddings, norms and head alone.* POET without R and P: the matrices keep their initial values. The difference to POET is what
   R and P add.
4. *Exact merges.* POET-FS that merges the exact Cayley map of the trained parameters. It keeps the singular values up to
   rounding. The Neumann series with k = 3 shrinks them at every merge, as weight decay would.
5. *Adam's eps.* POET-FS with eps where the authors' optimizer has it, before the second bias correction. There eps acts as 3e-5
   right after each merge, and clipped gradients are no larger than that (``analyses.errata.optimizer``).
6. *A longer run.* On 60M, AdamW and POET-FS at three times the length, where a scale tuned their rates for it, and AdamW at the tried rate
   below its own as well.
7. *Equal cost.* On 60M, AdamW's perplexity at POET's training time, and at POET's operations, interpolated between AdamW's three
   whole runs of Figure 9 (``analyses.controls.equal_cost``). If POET's cost lies outside of theirs, no number is given: it would be
   extrapolation. Time is wall-clock and includes evaluations and whatever else slowed the machine. It is compared only where one commit
   trained all these runs on one kind of machine.

``gain`` is log(AdamW's perplexity) - log(this perplexity), in nats, paired by seed, the mean over seeds. This AdamW has the row's own
rate and the same length. ``gain_share`` divides the gain by that of POET-FS, where that is positive, and ``gain_shares`` does so by seed.
"""

import math
import statistics
from typing import Any

import pandas as pd

from analyses.common.ablation import perplexity_columns
from analyses.common.claim_forms import ordering
from analyses.common.evidence import perplexities
from analyses.common.grid import longer_runs
from analyses.common.layout import crossed_table, markdown_page, measured_cell
from analyses.common.looks import look
from analyses.common.paper_scale import model_label
from analyses.common.plotting import Axes, Figure, bars, figure_outputs, plain_logarithmic, pyplot, save_figure, spread_note
from analyses.common.published import printed_perplexities
from analyses.controls.cells import (
    ADAMW, EPS, EXACT, FROZEN, MODELS, NORMALIZED, POET_BS, POET_FS, SMALLEST, TWO_RATES, VARIED, ControlRuns, cells, longer, specs_of,
)
from analyses.controls.equal_cost import COSTS, EQUAL, cost_lines, draw_cost
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.context import Context
from suite.fitness import LONGER
from suite.scale import Scale

#: Controls that AdamW is compared with at equal cost.
AT_EQUAL_COST = (POET_FS, POET_BS)
PERPLEXITY = "validation perplexity"
AT_LONGER = f"{PERPLEXITY} after {LONGER} times the steps"


def runs(scale: Scale) -> list[RunSpec]:
    """The runs of all cells, AdamW's longer runs, and the longer runs of AdamW and POET at tuned rates, for the control of a longer run."""
    groups = [*(cell.specs for cell in (*cells(scale), *longer(scale))), *longer_runs(scale, SMALLEST).values()]
    return [spec for specs in groups for spec in specs]


def gain(baseline: list[float], values: list[float]) -> float:
    """Mean over seeds of log(baseline) - log(value), in nats; NaN if a run of either diverged."""
    return statistics.fmean(math.log(b) - math.log(v) for b, v in zip(baseline, values, strict=True))


def _controls(context: Context, found: list[ControlRuns], quantity: str) -> list[dict[str, Any]]:
    printed = printed_perplexities()
    own = {(cell.model, cell.control): perplexities(context, cell.specs) for cell in found if cell.own_rate}
    lines = []
    for cell in found:
        columns = perplexity_columns(context, cell.specs)
        baseline, values = own[cell.model, ADAMW], perplexities(context, cell.specs)
        poet, here = gain(baseline, own[cell.model, POET_FS]), gain(baseline, values)
        by_seed = [(gain([a], [ours]), gain([a], [poets])) for a, ours, poets in zip(baseline, values, own[cell.model, POET_FS], strict=True)]
        lines.append({
            "control": cell.control, "quantity": quantity, "own_rate": "yes" if cell.own_rate else "no",
            "published": printed.get((cell.model, columns["variant"]), math.nan), **columns, "gain": here,
            "gain_share": here / poet if poet > 0 else math.nan,
            "gain_shares": " ".join(f"{ours / poets:.3f}" if poets > 0 else "-" for ours, poets in by_seed),
        })
    return lines


def table(context: Context) -> pd.DataFrame:
    """One line for each control (``quantity`` validation perplexity), then those of longer runs and of ``analyses.controls.equal_cost``."""
    controls = _controls(context, cells(context.scale), PERPLEXITY) + _controls(context, longer(context.scale), AT_LONGER)
    compared = {c.control: c.specs for c in cells(context.scale) if c.model == SMALLEST and c.control in AT_EQUAL_COST}
    frame = pd.DataFrame([*controls, *cost_lines(context, SMALLEST, compared)])
    first = [
        "model", "control", "quantity", "learning_rates", "own_rate", "published", "measured", "n", "std", "diverged",
        "collapsed", "gain", "gain_share", "gain_shares",
    ]
    return frame[[*first, *(column for column in frame if column not in first)]].astype({"collapsed": "Int64"})


def answers(frame: pd.DataFrame) -> list[str]:
    """For each model: the gain of every control, in a sentence."""
    lines = []
    for model, part in frame[frame.quantity == PERPLEXITY].groupby("model", sort=False):
        own = part[part.own_rate == "yes"].set_index("control").gain
        best = {control: part[part.control == control].gain.max() for control in (ADAMW, NORMALIZED)}
        grid = f" ({best[NORMALIZED]:+.3f} at its best rate)" if best[NORMALIZED] > own[NORMALIZED] else ""
        if best[ADAMW] > 0:
            grid += f", AdamW at its best rate {best[ADAMW]:+.3f}"
        lines.append(
            f"{model}, nats below AdamW: normalized initialization {own[NORMALIZED]:+.3f}{grid}, two learning rates "
            f"{own[TWO_RATES]:+.3f}, embeddings, norms and head alone {own[FROZEN]:+.3f}, to which R and P add "
            f"{own[POET_FS] - own[FROZEN]:+.3f} in POET-FS: {own[POET_FS]:+.3f} ({own[EXACT]:+.3f} with exact merges, "
            f"{own[EPS]:+.3f} with Adam's eps as the authors' optimizer has it); "
            f"POET-BS {own[POET_BS]:+.3f}."
        )
    if len(part := frame[frame.quantity == AT_LONGER]):
        runs = ", ".join(f"{line.control} at {line.learning_rates} {measured_cell(line)} ({line.gain:+.3f})" for line in part.itertuples())
        lines.append(f"{SMALLEST} after {LONGER} times the steps, in brackets nats below the first: {runs}.")
    return lines


def _draw_controls(axis: Axes, part: pd.DataFrame, title: str) -> None:
    labels = list(VARIED)
    for y, label in enumerate(labels):
        drawn = look(VARIED[label][0])
        own = part[(part.control == label) & (part.own_rate == "yes")]
        others = part[(part.control == label) & (part.own_rate == "no")]
        axis.plot(
            others.measured, [y] * len(others), marker="o", linestyle="", markersize=5, fillstyle="none", color=drawn["color"]
        )
        axis.errorbar(
            own.measured, [y] * len(own), xerr=bars(own["std"]), marker=drawn["marker"], linestyle="", markersize=9,
            capsize=3, color=drawn["color"],
        )
        for line in own.itertuples():
            if line.diverged:
                axis.text(
                    0.98, y, "diverged", transform=axis.get_yaxis_transform(), ha="right", va="center", fontsize="small"
                )
                continue
            axis.annotate(
                f"{line.measured:.1f}", (line.measured, y), xytext=(0, 9), textcoords="offset points", ha="center",
                fontsize="small", bbox={"color": "white", "pad": 0.5},
            )
    reference = part[(part.control == ADAMW) & (part.own_rate == "yes")].measured.iloc[0]
    axis.axvline(reference, color="black", linewidth=0.8, linestyle="--", zorder=0)
    axis.set(
        title=title, xlabel="validation perplexity", xscale="log", yticks=range(len(labels)), yticklabels=labels,
        ylim=(len(labels) - 0.5, -1),
    )
    plain_logarithmic(axis.xaxis, most=5)
    axis.margins(x=0.15)


def draw(frame: pd.DataFrame, scale: Scale) -> Figure:
    """Above: the controls on each model. Below: AdamW and POET over what their runs cost."""
    chosen = frame[frame.quantity == PERPLEXITY]
    models = list(dict.fromkeys(chosen.model))
    figure = pyplot().figure(figsize=(3.6 * max(3, len(models)), 7.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1))
    for index, (axis, model) in enumerate(zip(above.subplots(1, len(models), squeeze=False)[0], models, strict=True)):
        _draw_controls(axis, chosen[chosen.model == model], model_label(scale, model))
        if index:
            axis.set_yticklabels([])
    looks = {label: look(VARIED[label][0]) for label in AT_EQUAL_COST}
    costs = [cost for cost in COSTS if EQUAL.format(cost=cost) in set(frame.quantity)]
    for axis, cost in zip(below.subplots(1, len(costs), squeeze=False)[0], costs, strict=True):
        draw_cost(axis, frame, cost, looks, model_label(scale, SMALLEST))
    return figure


def markdown(frame: pd.DataFrame) -> str:
    """Controls down, models across, at the rates of each row, with the gain over AdamW in brackets; below, a sentence for each model."""
    own = frame[(frame.quantity == PERPLEXITY) & (frame.own_rate == "yes")]
    first = own.iloc[0]
    about = f"Validation perplexity on {first.corpus}; in brackets, nats below AdamW. Seeds: {first.seeds}."
    table = crossed_table(own, ["control"], "model", lambda line: measured_cell(line) + ("" if math.isnan(line.gain) else f" ({line.gain:+.3f})"))
    return markdown_page(f"{ARTIFACT.label}, {first.scale} scale", about, table, sentences=answers(frame))


def build(context: Context) -> None:
    frame = table(context)
    hollow = "Small hollow markers above: other rates of AdamW; below: AdamW at POET's cost."
    save_figure(draw(frame, context.scale), frame, context, ARTIFACT, f"{hollow} {spread_note(context)}", page=markdown(frame))


CLAIMS = (
    ordering(
        key="controls-inductive-bias", place="Section 4, Inductive bias",
        says="POET's structure is an inductive bias that standard training lacks; read here as a lower perplexity.",
        differences=f"{POET_FS} minus {TWO_RATES} (its own where the scale tuned it; elsewhere POET's for embeddings, norms and head, and AdamW's "
        "for the matrices), on each of the smaller models",
        pairs=lambda scale: [(specs_of(scale, model, POET_FS), specs_of(scale, model, TWO_RATES)) for model in MODELS if model in scale.models],
    ),
)

ARTIFACT = Artifact(
    label="Controls (not in the paper)",
    caption="What AdamW gains from POET's initialization and from a second learning rate, what POET has without R and P, and equal cost.",
    outputs=("controls.csv", "controls.md", *figure_outputs("controls")),
    runs=runs, build=build, models=(SMALLEST,), claims=CLAIMS,
)
