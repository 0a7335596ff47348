"""Tables of perplexities on one model: each setting beside what the paper prints for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analyses.common.comparisons import rank_agreement
from analyses.common.evidence import with_interval
from analyses.common.layout import measured_cell, measured_columns, write_csv
from analyses.common.published import read_published
from poet.methods import get_method
from poet.system.files import write_text
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Evidence
from suite.context import Context

#: A perplexity of at least this share of the vocabulary is that of a model which predicts nothing.
COLLAPSED = 0.95


def collapsed(perplexities: Sequence[float], vocabulary: int) -> int:
    """How many perplexities lie within 5% of the vocabulary's size or above it: a uniform guess would do as well."""
    return sum(p >= COLLAPSED * vocabulary for p in perplexities)


def perplexity_columns(context: Context, specs: Sequence[RunSpec]) -> dict[str, Any]:
    """What every line has of its runs: the final validation perplexity, and where it comes from.

    Args:
        context: for the records.
        specs: one setting, a spec for each seed.
    """
    values = [context.record(spec)["validation_perplexity"] for spec in specs]
    first, rates = specs[0], get_method(specs[0].method).learning_rates
    return {
        **measured_columns(values), "collapsed": collapsed(values, first.architecture.vocabulary), "unit": "perplexity",
        "scale": context.scale.name, "corpus": context.scale.corpus, "model": first.model, "variant": first.variant,
        "learning_rates": " ".join(f"{name}={first.parameters[name]:g}" for name in rates if name in first.parameters),
        "seeds": " ".join(str(spec.seed) for spec in specs),
    }


def perplexity_table(context: Context, name: str, specs: Mapping[str, Sequence[RunSpec]]) -> pd.DataFrame:
    """The tidy table: one line for each printed row.

    Args:
        context: for the records.
        name: of a file in ``analyses/published``: its first column names the settings, ``perplexity`` is printed.
        specs: for each setting by its printed name, one run for each seed.

    Raises:
        KeyError: the paper prints a setting that ``specs`` does not have.
    """
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
    """The printed order and the measured one, in sentences; what did not converge (NaN) comes last.

    Args:
        settings: names.
        published, measured: perplexities, one for each.
        agreement: of the two, over seeds.
    """
    columns = {"printed": pd.Series(published).fillna(math.inf), "measured": pd.Series(measured).fillna(math.inf)}
    orders = {kind: [settings[i] for i in values.sort_values(kind="stable").index] for kind, values in columns.items()}
    same_best = "yes" if orders["printed"][0] == orders["measured"][0] else "no"
    return [
        *(f"Order {kind}, best first: {', '.join(order)}." for kind, order in orders.items()),
        f"Rank agreement of {len(settings)} rows, Kendall's tau: {with_interval(agreement)}; the best is the same: {same_best}.",
    ]


def markdown(frame: pd.DataFrame, artifact: Artifact, down: Mapping[str, str], sentences: Sequence[str]) -> str:
    """The table as the paper lays it out, a column of ours beside the printed one, and sentences below.

    Args:
        frame: of :func:`perplexity_table`, of one scale.
        artifact: for its label and caption.
        down: columns of ``frame`` that stand left of the perplexities, with their headings.
        sentences: below the table.
    """
    first = frame.iloc[0]
    lines = [
        f"# {artifact.label}, {first.scale} scale",
        "",
        f"{artifact.caption} Seeds: {first.seeds}.",
        "",
        "| " + " | ".join([*down.values(), "published (C4)", f"measured ({first.scale} scale, {first.corpus})"]) + " |",
        "|" + " --- |" * len(down) + " ---: | ---: |",
    ]
    for line in frame.itertuples():
        printed = line.note.removeprefix("printed: ") if math.isnan(line.published) else f"{line.published:.2f}"
        lines.append(
            "| " + " | ".join([*(str(getattr(line, column)) for column in down), printed, measured_cell(line)]) + " |"
        )
    return "\n".join([*lines, "", *(f"- {sentence}" for sentence in sentences), ""])


def write_table(
    context: Context, artifact: Artifact, frame: pd.DataFrame, down: Mapping[str, str], agreement: Evidence,
    sentences: Sequence[str] = (),
) -> None:
    """Write an artifact's CSV and Markdown, with both orders and any further sentences below the table.

    Args:
        context: for the results folder.
        artifact: its outputs are a CSV and a Markdown file.
        frame: of :func:`perplexity_table`.
        down: see :func:`markdown`; the first column names the settings.
        agreement: of printed and measured order.
        sentences: further ones.
    """
    csv, text = artifact.outputs
    order = orderings([str(setting) for setting in frame[next(iter(down))]], frame.published, frame.measured, agreement)
    write_csv(frame, context.results / csv)
    write_text(context.results / text, markdown(frame, artifact, down, [*order, *sentences]))
