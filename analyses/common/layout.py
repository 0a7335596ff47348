"""What the tables share: tidy CSV, and Markdown as the paper lays it out."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from poet.system.files import write_text
from suite.artifact import Artifact
from suite.context import Context

#: The mark of each direction in a Markdown cell; ``analyses.report.markup`` replaces marks by words.
MARKS = {"as published": "+", "opposite": "-"}


def measured_columns(values: Sequence[float]) -> dict[str, float]:
    """The columns of a number that was measured with several seeds; NaN where a run diverged.

    ``measured`` is the mean, NaN if any run diverged. ``n`` counts the runs that did not, ``std`` is their sample standard deviation (NaN
    for fewer than two), and ``diverged`` counts the others.
    """
    done = [v for v in values if not math.isnan(v)]
    std = statistics.stdev(done) if len(done) > 1 else math.nan
    return {"measured": statistics.fmean(values), "n": len(done), "std": std, "diverged": len(values) - len(done)}


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a tidy table: floats in full precision, missing values as empty cells."""
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def markdown_table(heads: Iterable[str], alignment: str, rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; ``alignment`` has "l" or "r" for each column."""
    rule = ("---:" if side == "r" else "---" for side in alignment)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def crossed_table(frame: pd.DataFrame, down: Sequence[str], across: str, cell: Callable[[Any], str], more: Iterable[Iterable[str]] = ()) -> str:
    """A tidy table in Markdown: columns ``down`` name its rows, the values of ``across`` its columns. ``cell`` formats a line; ``more`` are further rows."""
    columns, rows = list(dict.fromkeys(frame[across])), []
    for key, part in frame.groupby(list(down), sort=False):
        of_column = {getattr(line, across): line for line in part.itertuples()}
        rows.append([*key, *(cell(of_column[column]) for column in columns)])
    return markdown_table([*down, *columns], "l" * len(down) + "r" * len(columns), [*rows, *more])


def numbered_table(number: int, caption: str, **attributes: Any) -> Artifact:
    """A table of the paper, with its CSV and its Markdown; ``attributes`` are further ones of :class:`Artifact`."""
    return Artifact(label=f"Table {number}", caption=caption, outputs=(f"table{number}.csv", f"table{number}.md"), **attributes)


def write_table(context: Context, artifact: Artifact, frame: pd.DataFrame, text: str) -> None:
    """Write an artifact's CSV and its Markdown."""
    csv, markdown = artifact.outputs
    write_csv(frame, context.results / csv)
    write_text(context.results / markdown, text)


def bullets(sentences: Iterable[str]) -> str:
    """A Markdown list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def markdown_page(title: str, *parts: str, sentences: Iterable[str] = ()) -> str:
    """A Markdown page: paragraphs and tables below the title, and a list of sentences at the end."""
    return "\n\n".join(filter(None, (f"# {title}", *parts, bullets(sentences)))) + "\n"


def mean_cell(line: Any, digits: int = 2) -> str:
    """A measured number in Markdown: mean and spread, or how many runs diverged."""
    if line.diverged:
        return f"diverged ({line.diverged} of {line.n + line.diverged})"
    spread = "" if math.isnan(line.std) else f" ± {line.std:.{digits}f}"
    return f"**{line.measured:.{digits}f}**{spread}"


def measured_cell(line: Any) -> str:
    """A :func:`mean_cell` of perplexities, and whether runs collapsed."""
    mark = f" (collapsed: {line.collapsed} of {line.n})" if line.collapsed and not line.diverged else ""
    return f"{mean_cell(line)}{mark}"
