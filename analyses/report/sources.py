"""The artifacts on the page."""

from pathlib import Path

from suite.artifact import Artifact
from suite.discovery import discover
from suite.scale import Scale

#: Sections of tables and figures, by id and heading; the last one has what the paper does not number.
GROUPS = (("tables", "Tables"), ("figures", "Figures"), ("more", "Beyond the paper"))


def on_the_page(scale: Scale) -> dict[str, Artifact]:
    """The artifacts that ``snakemake all`` makes without the outputs of others, by name: tables, figures, and the rest, in the paper's order.

    Artifacts are left out if the scale lacks a model that they need.
    """
    found = [(name, a) for name, a in discover().items() if a.in_all and not a.reads and not a.missing(scale)]
    return dict(sorted(found, key=lambda item: group(item[1])))


def group(artifact: Artifact) -> int:
    """The place in :data:`GROUPS` of an artifact's group."""
    return next((i for i, (_, heading) in enumerate(GROUPS) if artifact.label.startswith(f"{heading[:-1]} ")), len(GROUPS) - 1)


def left_out(scale: Scale) -> dict[str, tuple[str, list[str]]]:
    """Label and missing models of every artifact of ``all`` that a scale cannot make, by the artifact's name."""
    return {name: (a.label, models) for name, a in discover().items() if a.in_all and (models := a.missing(scale))}


def output_of(artifact: Artifact, suffix: str) -> str | None:
    """The first output of an artifact with a suffix; None if it writes none."""
    return next((output for output in artifact.outputs if Path(output).suffix == suffix), None)
