"""Errata: where the paper contradicts itself, or prints what does not hold, and what this suite does about it.

Every entry says how it was checked: by a computation, which runs when the table is built and fills ``published`` and
``measured``, or by quotations from the paper. :data:`analyses.errata.erratum.VERDICTS` has the verdicts and their meanings. The
build stops if the numbers of an entry no longer support its verdict. The files of ``analyses/errata/`` have the entries by
subject. :mod:`analyses.theory` tests the paper's theory in general; this list has only what looks wrong in print.
"""

import math

import pandas as pd

from analyses.common.layout import bullets, markdown_page, write_table
from analyses.errata import budgets, counts, figures, formulas, optimizer, orthogonality, proofs, spectra, tables
from analyses.errata.erratum import VERDICTS, Erratum
from suite.artifact import Artifact
from suite.context import Context

_MODULES = (formulas, spectra, proofs, orthogonality, counts, budgets, optimizer, tables, figures)
ERRATA = [value for module in _MODULES for value in vars(module).values() if isinstance(value, Erratum)]


def table() -> pd.DataFrame:
    """One line for each entry, in the order of :data:`VERDICTS`.

    Raises:
        ValueError: the numbers of an entry do not support its verdict.
    """
    order = list(VERDICTS)
    lines = [erratum.line() for erratum in sorted(ERRATA, key=lambda e: order.index(e.verdict))]
    return pd.DataFrame(lines).astype({"n": "Int64"})


def summary(frame: pd.DataFrame) -> str:
    """The numbers of entries by verdict, by check and by kind, in one paragraph."""
    verdicts, kinds = frame.verdict.value_counts(), frame[frame.verdict == "confirmed error"].kind.value_counts()
    counts = ", ".join(f"{verdicts.get(verdict, 0)} {verdict}" for verdict in VERDICTS)
    most = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    computed = int((frame.check == "computation").sum())
    return (
        f"{len(frame)} entries: {counts}. {computed} are checked by a computation that runs when this list is built, some of these on printed numbers alone, "
        f"and {len(frame) - computed} by quotation. The confirmed errors by kind: {most}."
    )


def entry(line) -> str:
    """One entry as a sentence in Markdown."""
    quotations = " / ".join(f'"{text}"' for text in (line.quotation, line.second_quotation) if text)
    printed = "" if math.isnan(line.published) else f"{line.published:.6g} against "
    number = "" if math.isnan(line.measured) else f" [{printed}{line.measured:.6g} {line.unit}]"
    what = f"**{line.id}** ({line.kind}). {line.where}: {quotations}."
    return f"{what} {line.explanation}{number} *Consequence:* {line.consequence}"


def markdown(frame: pd.DataFrame) -> str:
    """The readable list, by verdict."""
    parts = [ARTIFACT.caption, summary(frame)]
    for verdict, meaning in VERDICTS.items():
        part = frame[frame.verdict == verdict]
        if len(part):
            entries = bullets(map(entry, part.itertuples()))
            parts += [f"## {verdict.capitalize()} ({len(part)})", f"{meaning.capitalize()}.", entries]
    return markdown_page(ARTIFACT.label, *parts)


def build(context: Context) -> None:
    frame = table()
    write_table(context, ARTIFACT, frame, markdown(frame))


ARTIFACT = Artifact(
    label="Errata",
    caption="Inconsistencies of the paper, each with where it is, how it was checked and what it means for a "
    "reproduction. In brackets: what the paper prints or implies against what comes out.",
    outputs=("errata.csv", "errata.md"),
    build=build,
)
