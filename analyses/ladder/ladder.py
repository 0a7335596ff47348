"""The horizon ladder, which the paper lacks: every row at several lengths of training.

Each rung has the schedule of its own length, as many merges as the full length where steps allow, and learning rates that were tuned for it
(``config/tuning.yaml``). A gap is log(perplexity) - log(AdamW's), in nats, paired by seed. Two rows stand in the printed order of Table 2 at a
length if their mean gap lies on that side of zero, with a p-value of at most 5% after Holm's correction for all pairs and lengths that the scale plans, counted once
for each look that the two may have (``looks`` in ``config/tuning.yaml``). A test that has not been made counts as p = 1: so one that is made later undoes no decision. Two rows are
compared at a length where both have runs and neither's rates are censored. The order appears at the shortest length from which on every compared one shows it, and two rows
cross between two compared lengths whose orders differ. Nothing is said of other lengths; rungs that are not there are listed.

Where an order stands is a description and no verdict on the paper: that needs a length that passes the controls (:mod:`analyses.ladder.controls`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from analyses.common.grid import BASELINE
from analyses.common.layout import markdown_page, markdown_table, measured_columns
from analyses.common.paper_scale import model_label
from analyses.common.plotting import LINES, MARKERS, bars, figure_outputs, plain_logarithmic, save_figure
from analyses.ladder.controls import CONTROL, LARGER, WITHOUT, control_lines, fit_lengths
from analyses.ladder.orders import LENGTHS, MEANS, OPPOSITE, ORDER, PRINTED, order_line, printed_pairs, printed_perplexities, side
from analyses.ladder.rungs import BASELINES, Rung, gap, larger_model, p_of_gap, rung, steps_on, tokens_per_parameter, without_rotations
from poet.methods import all_rows
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.context import Context
from suite.scale import Scale
from suite.statistics import holm
from suite.tuning.cells import Cell, further_seeds, steps_of

PERPLEXITY = "validation perplexity"
#: The columns of the lengths at which a pair's order is decided.
DECIDED = [LENGTHS[PRINTED], LENGTHS[OPPOSITE]]


def runs(scale: Scale) -> list[RunSpec]:
    """The runs of every rung that has rates, and POET's without R and P. AdamW's on the larger model are Table 2's, and are read where they are there."""
    return [spec for cell in steps_on(scale) for found in (rung(scale, cell), without_rotations(scale, cell)) if found for spec in found.specs]


def _line(context: Context, cell: Cell, found: Rung | None, values: dict[Cell, dict[int, float]]) -> dict[str, Any]:
    own = values[cell]
    wanted = len(found.specs) if found else 0
    note = "no learning rates yet" if found is None else "" if len(own) == wanted else f"{wanted - len(own)} of {wanted} runs are missing"
    line = {
        "model": cell.model,
        "variant": cell.row,
        "quantity": PERPLEXITY,
        "length": str(cell.length),
        "steps": steps_of(context.scale, cell),
        "tokens_per_parameter": tokens_per_parameter(context.scale, cell),
        "rates": found.rates if found else "",
        "note": note,
    }
    printed = printed_perplexities(cell.model) if cell.length == 1 else {}
    if cell.row in printed:
        line |= {"published": printed[cell.row], "published_gap_adamw": math.log(printed[cell.row] / printed[BASELINE])}
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
    planned, tested = [], {}
    for cell in found:
        for model, better, worse in pairs:
            both = cell, Cell(model, worse, cell.length)
            if (model, better) != (cell.model, cell.row) or both[1] not in found:
                continue
            planned.append((model, better, worse, cell.length))
            if usable.issuperset(both) and (between := gap(*map(values.get, both))):
                looks = len(scale.protocol.looks) if all(further_seeds(scale, one) for one in both) else 1
                tested[planned[-1]] = between[0], p_of_gap(*map(values.get, both), looks)
    corrected = dict(zip(planned, holm([tested[key][1] if key in tested else 1.0 for key in planned]), strict=True))
    lines = []
    for model, better, worse in pairs:
        p = {key[3]: corrected[key] for key in sorted(tested, key=lambda key: key[3]) if key[:3] == (model, better, worse)}
        sides = {length: side(tested[model, better, worse, length][0], p[length]) for length in p}
        said = "; ".join(f"{p[length]:.2g} at {length}" for length in p)
        means = " ".join(str(length) for length in p if tested[model, better, worse, length][0] < 0)
        lines.append({"model": model, **order_line(better, worse, sides), MEANS: means, "holm_p": said, "tests": len(planned)})
    return lines


def _controls(context: Context, values: dict[Cell, dict[int, float]]) -> list[dict[str, Any]]:
    ends: dict[str, dict[Fraction, dict[str, dict[int, float]]]] = {}
    for cell, own in values.items():
        at = ends.setdefault(cell.model, {}).setdefault(cell.length, {})
        at[cell.row] = own
        at |= {name: beside.perplexities(context) for name, of in ((WITHOUT, without_rotations), (LARGER, larger_model)) if (beside := of(context.scale, cell))}
    return [line for model, by_length in ends.items() for line in control_lines(model, by_length)]


def table(context: Context) -> pd.DataFrame:
    """One line for each rung, missing ones among them, then one for each control at each length and one for each printed order.

    Raises:
        RunError: the scale has no ladder, or no rung of it was trained.
    """
    scale = context.scale
    cells = steps_on(scale)
    found = {cell: rung(scale, cell) for cell in cells}
    values = {cell: own.perplexities(context) if own else {} for cell, own in found.items()}
    if not any(values.values()):
        raise RunError(f"scale {scale.name} has no rung of a ladder: give it lengths under `tuning`, run make tune and make record, and train its runs")
    lines = [_line(context, cell, found[cell], values) for cell in cells]
    frame = pd.DataFrame([*lines, *_controls(context, values), *_orders(scale, found, values)]).assign(scale=scale.name, corpus=scale.corpus)
    return frame.astype({name: "Int64" for name in ("steps", "merges", "n", "diverged", "tests") if name in frame})


def markdown(frame: pd.DataFrame) -> str:
    """Rows that were measured down, lengths across; below, the controls, where each printed order appears, and what is missing."""
    shown, controls, orders = (frame[frame.quantity == kind] for kind in (PERPLEXITY, CONTROL, ORDER))
    key = "Cells: perplexity and, in brackets, nats above AdamW with one rate over the seeds that both have, with the 95% interval. \\*: rates chosen at an end of what was tried; such a cell takes part in no order. Last column: as Table 2 prints it, on C4, with nats above the printed AdamW."
    parts, said = [], []
    for model, part in shown.groupby("model", sort=False):
        lengths = part.drop_duplicates("length")
        heads, rows = [f"{line.length} ({line.tokens_per_parameter:,.0f})" for line in lengths.itertuples()], []
        for row, of_row in part[part.groupby("variant").n.transform("count") > 0].groupby("variant", sort=False):
            at = {line["length"]: line for line in of_row.to_dict("records")}
            rows.append([all_rows()[row][1].label, *(_cell(at.get(length)) for length in lengths.length), _printed(at.get("1"))])
        parts += [f"{model}: share of the full length (tokens a matrix parameter)", markdown_table(["row", *heads, "printed"], "l" + "r" * (len(heads) + 1), rows)]
        parts += [_fitness(model, controls[controls.model == model], list(lengths.length))]
    compared = orders[orders[list(LENGTHS.values())].ne("").any(axis=1)]
    for model, part in compared.groupby("model", sort=False):
        parts.append(_sides(model, part))
    said += map(_sentence, compared[compared[DECIDED].ne("").any(axis=1)].itertuples())
    if len(compared):
        made = sum(len(at.split()) for at in compared[list(LENGTHS.values())].to_numpy().ravel())
        said.append(
            f"An order is decided where its p-value is at most 5% after Holm's correction for the {compared.tests.iloc[0]} tests that the scale plans, of which {made} were made "
            "(the others count as p = 1). The intervals in the cells are each by itself."
        )
    if len(orders) > len(compared):
        said.append(f"Printed orders of two rows that share no length at which both are compared: {len(orders) - len(compared)} of {len(orders)}.")
    for note, part in shown[shown.note != ""].groupby("note", sort=False):
        said.append(f"Not there, {note}: {'; '.join(_absent(part))}.")
    return markdown_page(f"{ARTIFACT.label}, {frame.scale.iloc[0]} scale", f"{ARTIFACT.caption} {key}", *parts, sentences=said)


def _sides(model: str, compared: pd.DataFrame) -> str:
    """On which side the mean of each printed pair lies, lengths across, and how many lie as printed."""
    at = {column: [lengths.split() for lengths in compared[column]] for column in (*LENGTHS.values(), MEANS)}
    lengths = sorted({length for column in LENGTHS.values() for own in at[column] for length in own}, key=Fraction)
    rows, counts = [], {length: Counter() for length in lengths}
    for index, pair in enumerate(compared.itertuples()):
        own = {column: found[index] for column, found in at.items()}
        cells = []
        for length in lengths:
            side = "–"
            if any(length in own[column] for column in LENGTHS.values()):
                side = "printed" if length in own[MEANS] else "opposite"
                counts[length][side] += 1
            cells.append(f"**{side}**" if any(length in own[column] for column in DECIDED) else side)
        rows.append([" below ".join(all_rows()[row][1].label for row in (pair.variant, pair.against)), *cells])
    total = ["as printed", *(f"{count['printed']} of {count.total()}" for count in counts.values())]
    said = f"Pairs of rows of {model} in the order that Table 2 prints. Cells: the side of the mean gap; bold: decided."
    return f"{said}\n\n{markdown_table(['pair', *lengths], 'l' * (1 + len(lengths)), [*rows, total])}"


def _fitness(model: str, controls: pd.DataFrame, lengths: Sequence[str]) -> str:
    """The controls of a model, lengths across, and whether any length passes them all."""
    rows = []
    for name, part in controls.groupby("control", sort=False):
        at = part.set_index("length")
        rows.append([name, *(f"{at.outcome[length]}{at.note[length] and ': '}{at.note[length]}" for length in lengths)])
    fit = fit_lengths(zip(controls.length, controls.outcome, strict=True))
    said = f"Every control passed at {', '.join(fit)}." if fit else "At no length has every control passed, so the orders below are described and not judged."
    return f"Controls of {model}, in nats, with what was measured. {said}\n\n{markdown_table(['control', *lengths], 'l' * (1 + len(lengths)), rows)}"


def _absent(part: pd.DataFrame) -> list[str]:
    """The rungs of some lines: rows that lack the same lengths together."""
    lengths = part.groupby(["model", "variant"], sort=False).length.agg(", ".join).reset_index()
    return [
        f"{model} at {at}: {', '.join(rows.variant)}"
        for (model, at), rows in lengths.groupby(["model", "length"], sort=False)
    ]


def _cell(line: dict[str, Any] | None) -> str:
    if line is None or pd.isna(line["n"]):
        return "–"
    star = "\\*" if line["rates"] == "censored" else ""
    if line["diverged"]:
        return f"diverged{star}"
    between = line.get("gap_adamw", math.nan)
    low, high = line.get("gap_adamw_low", math.nan), line.get("gap_adamw_high", math.nan)
    interval = f" {low:+.3f} to {high:+.3f}" if math.isfinite(low) and math.isfinite(high) else ""
    return f"{line['measured']:.2f}{star}" + ("" if math.isnan(between) else f" ({between:+.3f}{interval and ','}{interval})")


def _printed(line: dict[str, Any] | None) -> str:
    if line is None or math.isnan(line.get("published", math.nan)):
        return "–"
    return f"{line['published']:.2f}" + (f" ({line['published_gap_adamw']:+.3f})" if line["published_gap_adamw"] else "")


def _sentence(line: Any) -> str:
    names = [all_rows()[row][1].label for row in (line.variant, line.against)]
    order = f"{line.model}, {names[0]} below {names[1]} (printed): "
    said = {kind: getattr(line, column) for kind, column in LENGTHS.items()}
    longest = max((length for at in said.values() for length in at.split()), key=Fraction)
    since = "does not appear by" if not line.appears_from else "at" if line.appears_from == longest else f"from {line.appears_from} to"
    parts = [f"{since} {longest}, the longest at which both are compared"]
    parts += [f"{kind} at {at.replace(' ', ', ')}" for kind, at in said.items() if at]
    turns = [f"the two cross between {line.crosses_between}"] if line.crosses_between else []
    return order + "; ".join([*parts, *turns]) + "."


def draw(frame: pd.DataFrame, scale: Scale) -> Figure:
    """Perplexity, and the gaps to both AdamWs, over tokens for each parameter; only measured lengths, joined by straight lines."""
    shown = frame[(frame.quantity == PERPLEXITY) & frame.measured.notna()]
    models, rows = list(dict.fromkeys(shown.model)), list(dict.fromkeys(shown.variant))
    figure, axes = plt.subplots(len(models), 3, figsize=(13, 0.6 + 4 * len(models)), squeeze=False, layout="constrained")
    titles = {"measured": "validation perplexity"} | {f"gap_{baseline}": f"nats above {label}" for baseline, label in BASELINES.items()}
    for line, model in zip(axes, models, strict=True):
        for axis, (column, title) in zip(line, titles.items(), strict=True):
            for index, row in enumerate(rows):
                part = shown[(shown.model == model) & (shown.variant == row)]
                if column not in part or part[column].isna().all():
                    continue
                look = {"color": f"C{index % 10}", "marker": MARKERS[index % len(MARKERS)], "linestyle": LINES[index % len(LINES)]}
                half = part["std"] if column == "measured" else part[f"{column}_high"] - part[column]
                half = bars(half.where(half.map(math.isfinite)))
                axis.errorbar(part.tokens_per_parameter, part[column], half, capsize=2, markersize=5, label=all_rows()[row][1].label, **look)
            if column == "measured":
                axis.set_yscale("log")
                plain_logarithmic(axis.yaxis)
            else:
                axis.axhline(0, color="black", linewidth=0.8, zorder=0)
            axis.set(xscale="log", xlabel="tokens a matrix parameter", title=f"{model_label(scale, model)}\n{title}")
            plain_logarithmic(axis.xaxis)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=6, frameon=False, fontsize="small")
    return figure


def note(frame: pd.DataFrame) -> str:
    """What the marks mean, for the caption."""
    n = (frame.n + frame.diverged).dropna()
    seeds = f"n = {n.min()} seed{'s' if n.min() > 1 else ''}" if n.min() == n.max() else f"n = {n.min()} to {n.max()} seeds"
    spread = "Bars: one standard deviation on the left, 95% intervals elsewhere" if n.max() > 1 else "No error bars"
    return f"{spread}, {seeds}. Lines join measured lengths."


def build(context: Context) -> None:
    frame = table(context)
    save_figure(draw(frame, context.scale), frame, context, ARTIFACT, note(frame), page=markdown(frame))


ARTIFACT = Artifact(
    label="Horizon ladder (not in the paper)",
    caption="Perplexity of every row over the length of training, each length with its own schedule and its own tuned rates.",
    outputs=("ladder.csv", "ladder.md", *figure_outputs("ladder")),
    runs=runs,
    build=build,
    in_all=False,
)
