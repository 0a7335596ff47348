"""Tables of perplexities on one model: each setting beside what the paper prints for it."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from analyses.common.claim_forms import Pair, same_order, too_few
from analyses.common.controls import table_section
from analyses.common.evidence import perplexities, rank_agreement, with_p
from analyses.common.grid import cell_runs
from analyses.common.layout import markdown_page, markdown_table, measured_cell, measured_columns, numbered_table, write_table
from analyses.common.published import read_published
from poet.methods import get_method
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Claim, Evidence
from suite.context import Context
from suite.scale import Scale

#: From a scale to the runs of each setting: by the setting's printed name, then by seed.
Specs = Callable[[Scale], Mapping[str, Sequence[RunSpec]]]
#: A run has collapsed if its final perplexity is at least this share of the vocabulary's size: it predicts nothing.
COLLAPSED = 0.95


def settings(scale: Scale, model: str, row: str, overrides: Mapping[str, Mapping[str, Any]]) -> dict[str, list[RunSpec]]:
    """The runs of a row on a model by setting and seed; ``overrides`` has the changed parameters of each setting."""
    return {name: cell_runs(scale, model, row, overrides=dict(changed)) for name, changed in overrides.items()}


def collapsed(perplexities: Sequence[float], vocabulary: int) -> int:
    """How many perplexities lie within 5% of the vocabulary's size or above it: a uniform guess would do as well."""
    return sum(p >= COLLAPSED * vocabulary for p in perplexities)


def perplexity_columns(context: Context, specs: Sequence[RunSpec]) -> dict[str, Any]:
    """The columns of a table's line on the runs of one setting: their final validation perplexities, and how they were trained."""
    values = perplexities(context, specs)
    first, rates = specs[0], get_method(specs[0].method).learning_rates
    return {
        **measured_columns(values), "collapsed": collapsed(values, first.architecture.vocabulary), "unit": "perplexity",
        "scale": context.scale.name, "corpus": context.scale.corpus, "model": first.model, "variant": first.variant,
        "learning_rates": " ".join(f"{name}={first.parameters[name]:g}" for name in rates if name in first.parameters),
        "seeds": " ".join(str(spec.seed) for spec in specs),
    }


def perplexity_table(context: Context, name: str, specs: Mapping[str, Sequence[RunSpec]]) -> pd.DataFrame:
    """The tidy table: one line for each row of ``analyses/published/<name>.csv``, whose first column names the settings.

    ``specs`` has the runs of each setting by its printed name, one for each seed."""
    printed = read_published(name)
    lines = []
    for setting, perplexity in printed[[printed.columns[0], "perplexity"]].itertuples(index=False):
        number = pd.to_numeric(perplexity, errors="coerce")
        note = f"printed: {perplexity}" if math.isnan(number) else ""
        lines.append({
            printed.columns[0]: setting, "published": float(number), **perplexity_columns(context, specs[setting]),
            "note": note,
        })
    return pd.DataFrame(lines)


def table_agreement(context: Context, name: str, specs: Mapping[str, Sequence[RunSpec]]) -> Evidence:
    """Rank agreement of a table with the paper; arguments as in :func:`perplexity_table`."""
    printed = read_published(name)
    numbers = pd.to_numeric(printed.perplexity, errors="coerce")
    return rank_agreement(context, numbers.tolist(), [specs[setting] for setting in printed.iloc[:, 0]])


def orderings(
    settings: Sequence[str], published: Sequence[float], measured: Sequence[float], agreement: Evidence
) -> list[str]:
    """Sentences on the printed and the measured order and on their rank agreement. NaN (not converged) counts as the worst.

    For two rows there is no sentence on agreement: its permutation p-value would be 1 for every order."""
    columns = {"printed": pd.Series(published).fillna(math.inf), "measured": pd.Series(measured).fillna(math.inf)}
    orders = {kind: [settings[i] for i in values.sort_values(kind="stable").index] for kind, values in columns.items()}
    same_best = "yes" if orders["printed"][0] == orders["measured"][0] else "no"
    said = [f"Order {kind}, best first: {', '.join(order)}." for kind, order in orders.items()]
    if len(settings) < 3:
        return said
    return [*said, f"Rank agreement of {len(settings)} rows, Kendall's tau: {with_p(agreement)}; the best is the same: {same_best}."]


def markdown(frame: pd.DataFrame, artifact: Artifact, controls: str, down: Mapping[str, str], sentences: Sequence[str]) -> str:
    """The table as the paper lays it out, a column of ours beside the printed one, controls above and sentences below.

    ``down`` has the columns of ``frame`` to the left of the perplexities, with their headings."""
    first = frame.iloc[0]
    rows = []
    for line in frame.itertuples():
        printed = line.note.removeprefix("printed: ") if math.isnan(line.published) else f"{line.published:.2f}"
        rows.append([*(str(getattr(line, column)) for column in down), printed, measured_cell(line)])
    heads = [*down.values(), "published (C4)", f"measured ({first.scale} scale, {first.corpus})"]
    table, about = markdown_table(heads, "l" * len(down) + "rr", rows), f"{artifact.caption} Seeds: {first.seeds}."
    return markdown_page(f"{artifact.label}, {first.scale} scale", about, controls, table, sentences=sentences)


def every_pair(cells: Mapping[str, Sequence[RunSpec]], lower: Iterable[str], higher: Iterable[str]) -> list[Pair]:
    """The runs of every setting of ``lower`` with those of every other setting of ``higher``."""
    return [(cells[a], cells[b]) for a, b in itertools.product(lower, higher) if a != b]


def printed_order(number: int, specs: Specs) -> Claim:
    """The claim that the settings of a table stand in the order that is printed."""
    return same_order(
        key=f"table{number}-rank-agreement", place=f"Table {number}",
        measure=lambda context: table_agreement(context, f"table{number}", specs(context.scale)),
        more=too_few(len(read_published(f"table{number}"))),
    )


def ablation(
    number: int, caption: str, model: str, specs: Specs, down: Mapping[str, str], claims: Sequence[Claim],
    table: Callable[[Context], pd.DataFrame] | None = None,
    sentences: Callable[[pd.DataFrame], Sequence[str]] = lambda frame: (),
) -> Artifact:
    """A table of perplexities on a model, as CSV and Markdown, with the printed and the measured order and ``sentences`` below it.

    ``specs`` has the settings. ``table`` replaces :func:`perplexity_table` where a table has further columns. The first column of
    ``down`` names the settings; see :func:`markdown`."""
    name = f"table{number}"

    def build(context: Context) -> None:
        cells = specs(context.scale)
        frame = table(context) if table else perplexity_table(context, name, cells)
        settings = [str(setting) for setting in frame[next(iter(down))]]
        order = orderings(settings, frame.published, frame.measured, table_agreement(context, name, cells))
        controls = table_section(context, artifact.runs(context.scale))
        write_table(context, artifact, frame, markdown(frame, artifact, controls, down, [*order, *sentences(frame)]))

    artifact = numbered_table(
        number, caption,
        runs=lambda scale: [spec for by_seed in specs(scale).values() for spec in by_seed],
        build=build, models=(model,), claims=tuple(claims),
    )
    return artifact
