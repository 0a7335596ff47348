"""The artifacts on the page, and reading their files; an error names the missing one in a sentence."""

import csv
import io
from pathlib import Path

from poet.training.errors import RunError
from suite.artifact import Artifact
from suite.context import Context
from suite.discovery import discover
from suite.scale import Scale

#: A line of a CSV, every cell as it is written.
Row = dict[str, str]
#: Sections of tables and figures, by id and heading; the last one has what the paper does not number.
GROUPS = (("tables", "Tables"), ("figures", "Figures"), ("more", "Beyond the paper"))


def on_the_page(scale: Scale) -> dict[str, Artifact]:
    """The artifacts that ``snakemake all`` makes without the outputs of others, by name: tables, figures, and the rest, in the paper's order.

    Artifacts are left out if the scale lacks a model that they need.
    """
    found = {name: artifact for name, artifact in discover().items() if artifact.in_all and not artifact.reads}
    makeable = {name: artifact for name, artifact in found.items() if not artifact.missing(scale)}
    return dict(sorted(makeable.items(), key=lambda item: group(item[1])))


def group(artifact: Artifact) -> int:
    """The place in :data:`GROUPS` of an artifact's group."""
    return next((i for i, (_, heading) in enumerate(GROUPS) if artifact.label.startswith(f"{heading[:-1]} ")), len(GROUPS) - 1)


def left_out(scale: Scale) -> dict[str, tuple[str, list[str]]]:
    """Label and missing models of every artifact of ``all`` that a scale cannot make, by the artifact's name."""
    return {name: (a.label, models) for name, a in discover().items() if a.in_all and (models := a.missing(scale))}


def read_bytes(context: Context, output: str) -> bytes:
    """A file below the results folder.

    Raises:
        RunError: it is not there; the sentence has the command that makes it.
    """
    try:
        return (context.results / output).read_bytes()
    except FileNotFoundError:
        raise RunError(f"{context.results / output} is missing: make it with `{again(context, output)}`") from None


def read_text(context: Context, output: str) -> str:
    """A text file below the results folder; see :func:`read_bytes`."""
    return read_bytes(context, output).decode()


def read_rows(context: Context, output: str) -> list[Row]:
    """The lines of a CSV below the results folder; see :func:`read_bytes`."""
    return list(csv.DictReader(io.StringIO(read_text(context, output), newline="")))


def again(context: Context, output: str, options: str = "") -> str:
    """The command that makes an output, for error messages."""
    seeds = ",".join(map(str, context.scale.seeds))
    return f"snakemake --cores all {options}{context.results / output} --config scale={context.scale.name} 'seeds=[{seeds}]'"


def output_of(artifact: Artifact, suffix: str) -> str | None:
    """The first output of an artifact with a suffix; None if it writes none."""
    return next((output for output in artifact.outputs if Path(output).suffix == suffix), None)
