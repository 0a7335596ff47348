"""The horizon ladder, which the paper lacks: every row at several lengths of training.

A rung is a row on a model at a length. It has the schedule of its length, learning rates that were tuned for it (``config/tuning.yaml``) and, where
steps allow, as many merges as the full length. A gap is log(perplexity) - log(AdamW's), in nats, paired by seed. Two rows are compared at a length
where both have runs on shared seeds and neither's rates are censored. They stand in the printed order of Table 2 if their mean gap has the printed
sign, with a p-value of at most 5%. The p-value is multiplied by the number of looks at the two rows (``looks`` in ``config/tuning.yaml``), and corrected
by Holm's method for all pairs and lengths that the scale plans. A planned test that was not made yet counts as p = 1, so making it later undoes no
decision. The order appears at the shortest length from which every compared length shows it. Two rows cross between neighbouring decided lengths with
different orders. Missing rungs are listed. Of models that are tuned at one length, perplexities and gaps are shown, and no order is tested.

An order describes the runs. A verdict on the paper needs a length that passes the controls (:mod:`analyses.ladder.controls`).
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import pandas as pd

from analyses.common.grid import BASELINE
from analyses.common.layout import measured_columns
from analyses.common.looks import look
from analyses.common.paper_scale import model_label
from analyses.common.plotting import Figure, bars, figure_outputs, plain_logarithmic, pyplot, save_figure
from analyses.common.published import printed_perplexities
from analyses.ladder.controls import LARGER, WITHOUT, control_lines
from analyses.ladder.orders import order_line, printed_pairs, side
from analyses.ladder.page import markdown
from analyses.ladder.rungs import BASELINES, PERPLEXITY, Rung, at_look, beside, gap, larger_model, p_of_gap, rung, steps_on, tokens_per_parameter, without_rotations
from poet.methods import all_rows
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.context import Context
from suite.scale import Scale
from suite.statistics import holm
from suite.tuning.cells import Cell, further_seeds, steps_of

#: How far apart neighbouring rows of one length are drawn, as a ratio.
APART = 1.025


def runs(scale: Scale) -> list[RunSpec]:
    """The runs of every rung that has rates, of POET without R and P, and of models that are tuned at one length."""
    rungs = [found for cell in steps_on(scale) for found in (rung(scale, cell), without_rotations(scale, cell))]
    return [spec for found in (*rungs, *(rung(scale, cell) for cell in beside(scale))) if found for spec in found.specs]


def _line(context: Context, cell: Cell, found: Rung | None, values: dict[Cell, dict[int, float]]) -> dict[str, Any]:
    own = values[cell]
    wanted = len(found.specs) if found else 0
    note = "no learning rates yet" if found is None else "" if len(own) == wanted else f"{wanted - len(own)} of {wanted} runs are missing"
    line = {
        "model": cell.model, "variant": cell.row, "against": "", "quantity": PERPLEXITY, "length": str(cell.length), "steps": steps_of(context.scale, cell),
        "tokens_per_parameter": tokens_per_parameter(context.scale, cell), "rates": found.rates if found else "", "note": note,
    }
    printed = printed_perplexities() if cell.length == 1 else {}
    if (place := (cell.model, cell.row)) in printed:
        line |= {"published": printed[place], "published_gap_adamw": math.log(printed[place] / printed[cell.model, BASELINE])}
    if found:
        parameters = found.specs[0].parameters
        every = parameters.get("merge_every")
        names = all_rows()[cell.row][0].learning_rates
        line |= {"merges": line["steps"] // every if every else math.nan, "learning_rates": " ".join(f"{n}={parameters[n]:g}" for n in names)}
    if not own:
        return line
    line |= {**measured_columns(list(own.values())), "seeds": " ".join(map(str, own))}
    for baseline in BASELINES:
        other = values.get(Cell(cell.model, baseline, cell.length), {})
        if cell.row != baseline and (between := gap(own, other)):
            line |= dict(zip((f"gap_{baseline}", f"gap_{baseline}_low", f"gap_{baseline}_high"), between, strict=True))
    return line


def _orders(scale: Scale, found: dict[Cell, Rung | None], values: dict[Cell, dict[int, float]]) -> list[dict[str, Any]]:
    usable = {cell for cell, own in found.items() if own and own.rates != "censored"}
    rows = {model: {cell.row for cell in found if cell.model == model} for model in dict.fromkeys(cell.model for cell in found)}
    pairs = [(model, *pair) for model, own in rows.items() for pair in printed_pairs(model, own)]
    means = {pair: {} for pair in pairs}  # the mean gaps of the tests that were made, by length
    p = {}  # of every planned test by pair and length; 1 for one that was not made
    for pair, length in itertools.product(pairs, sorted({cell.length for cell in found})):
        model, *two = pair
        both = [Cell(model, row, length) for row in two]
        if not all(cell in found for cell in both):
            continue
        p[pair, length] = 1.0
        seen = at_look(*map(values.get, both), scale.protocol.looks)
        if usable.issuperset(both) and (between := gap(*seen)):
            looks = len(scale.protocol.looks) if all(further_seeds(scale, cell) for cell in both) else 1
            means[pair][length], p[pair, length] = between[0], p_of_gap(*seen, looks)
    corrected = dict(zip(p, holm(list(p.values())), strict=True))
    lines = []
    for (model, better, worse), made in means.items():
        own = {length: corrected[(model, better, worse), length] for length in made}
        sides = {length: side(mean, own[length]) for length, mean in made.items()}
        said = "; ".join(f"{value:.2g} at {length}" for length, value in own.items())
        lines.append({"model": model, **order_line(better, worse, sides, made), "holm_p": said, "tests": len(p)})
    return lines


def _controls(context: Context, values: dict[Cell, dict[int, float]]) -> list[dict[str, Any]]:
    ends: dict[str, dict[Fraction, dict[str, dict[int, float]]]] = {}
    for cell, own in values.items():
        at = ends.setdefault(cell.model, {}).setdefault(cell.length, {})
        at[cell.row] = own
        at |= {name: control.perplexities(context) for name, of in ((WITHOUT, without_rotations), (LARGER, larger_model)) if (control := of(context.scale, cell))}
    return [line for model, by_length in ends.items() for line in control_lines(model, by_length)]


def table(context: Context) -> pd.DataFrame:
    """One line for each rung, missing ones among them, then one for each control at each length and one for each printed order.

    Raises:
        RunError: the scale has no ladder, or no rung of it was trained.
    """
    scale = context.scale
    found = {cell: rung(scale, cell) for cell in (*steps_on(scale), *beside(scale))}
    values = {cell: own.perplexities(context) if own else {} for cell, own in found.items()}
    rungs = {cell: found[cell] for cell in steps_on(scale)}
    if not any(values[cell] for cell in rungs):
        raise RunError(f"scale {scale.name} has no rung of a ladder: give it lengths under `tuning`, run make tune and make record, and train its runs")
    lines = [_line(context, cell, found[cell], values) for cell in found]
    frame = pd.DataFrame([*lines, *_controls(context, {cell: values[cell] for cell in rungs}), *_orders(scale, rungs, values)]).assign(scale=scale.name, corpus=scale.corpus)
    return frame.astype({name: "Int64" for name in ("steps", "merges", "n", "diverged", "tests") if name in frame})


def _drawn(frame: pd.DataFrame) -> pd.DataFrame:
    """The measured rungs of models with several lengths."""
    lines = frame[frame.quantity == PERPLEXITY]
    return lines[lines.measured.notna() & (lines.groupby("model").length.transform("nunique") > 1)]


def draw(frame: pd.DataFrame, scale: Scale) -> Figure:
    """Perplexity, and the gaps to both AdamWs, over tokens for each parameter; only measured lengths, joined by straight lines."""
    shown = _drawn(frame)
    models, rows = list(dict.fromkeys(shown.model)), list(dict.fromkeys(shown.variant))
    figure, axes = pyplot().subplots(len(models), 3, figsize=(13, 0.6 + 4 * len(models)), squeeze=False, layout="constrained")
    titles = {"measured": "validation perplexity"} | {f"gap_{baseline}": f"nats above {label}" for baseline, label in BASELINES.items()}
    for line, model in zip(axes, models, strict=True):
        for axis, (column, title) in zip(line, titles.items(), strict=True):
            for index, row in enumerate(rows):
                part = shown[(shown.model == model) & (shown.variant == row)]
                if column not in part or part[column].isna().all():
                    continue
                half = part["std"] if column == "measured" else part[f"{column}_high"] - part[column]
                half = bars(half.where(half.map(math.isfinite)))
                moved = 1 if column == "measured" else APART ** (index - len(rows) / 2)
                axis.errorbar(part.tokens_per_parameter * moved, part[column], half, capsize=2, markersize=5, label=all_rows()[row][1].label, **look(row))
            if column == "measured":
                axis.set_yscale("log")
                plain_logarithmic(axis.yaxis)
            else:
                axis.axhline(0, color="black", linewidth=0.8, zorder=0)
            axis.set(xscale="log", xlabel="tokens per matrix parameter", title=f"{model_label(scale, model)}\n{title}")
            plain_logarithmic(axis.xaxis)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=6, frameon=False, fontsize="small")
    return figure


def note(frame: pd.DataFrame) -> str:
    """What the marks mean, for the caption."""
    shown = _drawn(frame)
    n = (shown.n + shown.diverged).dropna()
    seeds = f"n = {n.min()} seed{'s' if n.min() > 1 else ''}" if n.min() == n.max() else f"n = {n.min()} to {n.max()} seeds"
    spread = "Bars: one standard deviation on the left, 95% intervals elsewhere" if n.max() > 1 else "No error bars"
    return f"{spread}, {seeds}. Lines join measured lengths. Gaps of one length are drawn a little apart, so that their bars can be told from each other."


def build(context: Context) -> None:
    frame = table(context)
    save_figure(draw(frame, context.scale), frame, context, ARTIFACT, note(frame), page=markdown(frame, ARTIFACT.label, ARTIFACT.caption))


ARTIFACT = Artifact(
    label="Horizon ladder (not in the paper)",
    caption="Perplexity of every row over the length of training, each length with its own schedule and its own tuned rates.",
    outputs=("ladder.csv", "ladder.md", *figure_outputs("ladder")),
    runs=runs, build=build, in_all=False,
)
