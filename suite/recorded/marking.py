"""Building an artifact, and saying on it which of its runs were not trained here."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from analyses.artifact import EVERY, Artifact, Context, discover, find
from poet.system.files import write_text
from poet.training.spec import RunSpec
from suite.recorded.origin import foreign, sentence


def build_artifact(name: str, context: Context) -> None:
    """Write an artifact's files.

    Figures and the report say by their captions that runs were recorded. A table's Markdown has a line for it, and its CSV a
    column ``origin`` if some of its runs are foreign.

    Raises:
        UserError: whatever the artifact raises.
    """
    artifact = find(name)
    artifact.build(context)
    specs = runs_behind(artifact, context)
    said, strange = sentence(context.results, specs), foreign(context.results, specs)
    for output in artifact.outputs:
        path = context.results / output
        if said and output.endswith(".md"):
            write_text(path, f"{path.read_text(encoding='utf-8').rstrip()}\n\n{said}\n")
        if strange and output.endswith(".csv"):
            _add_column(path, "origin", strange)


def runs_behind(artifact: Artifact, context: Context) -> list[RunSpec]:
    """The runs of an artifact, and of those that it is built from."""
    specs = list(artifact.runs(context.scale))
    if artifact.reads:
        found = discover()
        plain = [name for name, other in found.items() if other.in_all and not other.reads]
        names = {name for read in artifact.reads for name in (plain if read == EVERY else [read])}
        makeable = [found[name] for name in names if set(found[name].models) <= set(context.scale.models)]
        specs += [spec for other in makeable for spec in other.runs(context.scale)]
    return specs


def _add_column(path: Path, column: str, value: str) -> None:
    with open(path, newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*head, column])
    writer.writerows([*line, value] for line in lines)
    write_text(path, text.getvalue())
