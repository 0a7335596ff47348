"""The ladder's page: its table as Markdown, with its controls and printed orders."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pandas as pd

from analyses.common.layout import markdown_page, markdown_table
from analyses.ladder.controls import CONTROL, fit_lengths
from analyses.ladder.orders import LENGTHS, MEANS, OPPOSITE, ORDER, PRINTED
from analyses.ladder.rungs import PERPLEXITY
from poet.methods import all_rows

#: The columns of the lengths at which a pair's order is decided.
DECIDED = [LENGTHS[PRINTED], LENGTHS[OPPOSITE]]


def markdown(frame: pd.DataFrame, label: str, caption: str) -> str:
    """The page: a table for each model (measured rows down, lengths across), its controls, the printed orders, and the missing rungs."""
    shown, controls, orders = (frame[frame.quantity == kind] for kind in (PERPLEXITY, CONTROL, ORDER))
    key = "Cells: perplexity and, in brackets, nats above AdamW with one rate over the seeds that both have, with the 95% interval; AdamW has more seeds than some rows, so a gap may differ from that of the two perplexities. \\*: rates chosen at an end of what was tried; such a cell takes part in no order. Last column: as Table 2 prints it, on C4, with nats above the printed AdamW."
    parts, said = [], []
    for model, part in shown.groupby("model", sort=False):
        lengths = part.drop_duplicates("length")
        heads, rows = [f"{line.length} ({line.tokens_per_parameter:,.0f})" for line in lengths.itertuples()], []
        for row, of_row in part[part.groupby("variant").n.transform("count") > 0].groupby("variant", sort=False):
            at = {line["length"]: line for line in of_row.to_dict("records")}
            rows.append([all_rows()[row][1].label, *(_cell(at.get(length)) for length in lengths.length), _printed(at.get("1"))])
        if not rows:
            continue
        one = "" if len(heads) > 1 else "; one length, so no order is tested"
        parts += [f"{model}: share of the full length (tokens per matrix parameter){one}", markdown_table(["row", *heads, "printed"], "l" + "r" * (len(heads) + 1), rows)]
        if alike := _tuned_alike(part):
            parts += [
                f"{model}, tuned alike: nats above AdamW with two rates of its own, with the 95% interval. The paper has no such row, so no order to it is tested.",
                markdown_table(["row", *heads], "l" + "r" * len(heads), alike),
            ]
        if len(of_model := controls[controls.model == model]):
            parts.append(_fitness(model, of_model, list(lengths.length)))
    compared = orders[orders[list(LENGTHS.values())].ne("").any(axis=1)]
    for model, part in compared.groupby("model", sort=False):
        parts.append(_sides(model, part))
    decided = compared[DECIDED].ne("").any(axis=1)
    said += map(_sentence, compared[decided].itertuples())
    if left := int((~decided).sum()):
        said.append(f"{left} of {len(compared)} printed orders are undecided at every length at which both rows are compared: they appear at none, and no crossing of theirs is decided.")
    if len(compared):
        made = sum(len(at.split()) for at in compared[list(LENGTHS.values())].to_numpy().ravel())
        said.append(
            f"An order is decided where its p-value is at most 5% after Holm's correction for the {compared.tests.iloc[0]} tests that the scale plans, of which {made} were made "
            "(the others count as p = 1). The intervals in the cells are each by itself."
        )
    if len(orders) > len(compared):
        said.append(f"Printed orders of two rows that share no length at which both are compared: {len(orders) - len(compared)} of {len(orders)}.")
    for note, part in shown[shown.note != ""].groupby("note", sort=False):
        said.append(f"Not in the ladder, {note}: {'; '.join(_absent(part))}.")
    return markdown_page(f"{label}, {frame.scale.iloc[0]} scale", f"{caption} {key}", *parts, sentences=said)


def _tuned_alike(part: pd.DataFrame) -> list[list[str]]:
    """For each row its gap to AdamW with two rates, by length; no rows if there is none."""
    names = ("gap_adamw-two-rates", "gap_adamw-two-rates_low", "gap_adamw-two-rates_high")
    if names[0] not in part:
        return []
    gaps = {key: tuple(line[name] for name in names) for key, line in zip(zip(part.variant, part.length, strict=True), part.to_dict("records"), strict=True)}
    rows = [row for row in part.variant.unique() if any(math.isfinite(gap[0]) for (other, _), gap in gaps.items() if other == row)]
    return [[all_rows()[row][1].label, *(_gap(*gaps.get((row, length), (math.nan,) * 3)) or "–" for length in part.length.unique())] for row in rows]


def _gap(mean: float, low: float, high: float) -> str:
    """``"+0.139 (+0.095 to +0.183)"``; without brackets for one seed, empty if there is no gap."""
    interval = f" ({low:+.3f} to {high:+.3f})" if math.isfinite(low) and math.isfinite(high) else ""
    return "" if math.isnan(mean) else f"{mean:+.3f}{interval}"


def _sides(model: str, compared: pd.DataFrame) -> str:
    """The side of each printed pair's mean gap, lengths across, and how many pairs lie as printed."""
    lengths = sorted({length for column in LENGTHS.values() for at in compared[column] for length in at.split()}, key=Fraction)
    rows, counts = [], {length: Counter() for length in lengths}
    for pair in compared.to_dict("records"):
        sides = {length: side for side, column in MEANS.items() for length in pair[column].split()}
        decided = {length for column in DECIDED for length in pair[column].split()}
        for length, side in sides.items():
            counts[length][side] += 1
        cells = (f"**{sides[length]}**" if length in decided else sides.get(length, "–") for length in lengths)
        rows.append([" below ".join(all_rows()[pair[row]][1].label for row in ("variant", "against")), *cells])
    total = [PRINTED, *(f"{count[PRINTED]} of {count.total()}" for count in counts.values())]
    said = f"Pairs of rows of {model} in the order that Table 2 prints. Cells: the side of the mean gap; bold: decided."
    return f"{said}\n\n{markdown_table(['pair', *lengths], 'l' * (1 + len(lengths)), [*rows, total])}"


def _fitness(model: str, controls: pd.DataFrame, lengths: Sequence[str]) -> str:
    """The controls of a model, lengths across, and whether any length passes them all."""
    rows = []
    for name, part in controls.groupby("variant", sort=False):
        at = part.set_index("length")
        rows.append([name, *(f"{at.outcome[length]}{at.note[length] and ': '}{at.note[length]}" for length in lengths)])
    fit = fit_lengths(zip(controls.length, controls.outcome, strict=True))
    said = f"Each of these controls passed at {', '.join(fit)}." if fit else "At no length has each of them passed, so the orders below are described and not judged."
    return f"Controls of {model}, in nats, with what was measured. {said}\n\n{markdown_table(['control', *lengths], 'l' * (1 + len(lengths)), rows)}"


def _absent(part: pd.DataFrame) -> list[str]:
    """The missing rungs in words; rows that lack the same lengths share an entry."""
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
