"""A table or figure on the page: its layout, its picture, its printed and measured numbers."""

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from analyses.report.markup import to_html
from analyses.report.numbers import Comparison, comparison
from analyses.report.sources import GROUPS, again, group, output_of, read_bytes, read_rows, read_text
from poet.training.errors import RunError
from suite.artifact import Artifact
from suite.context import Context
from suite.recorded.marking import caption as build_caption

#: Artifacts with a section of their own.
SEPARATE = ("errata", "theory")
#: How a PNG begins.
SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Picture:
    """A data URI, and the picture's size in pixels."""

    source: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Card:
    """An artifact as the page shows it."""

    name: str  # of the artifact
    label: str  # what the paper calls it
    caption: str  # with the scale and the corpus
    table: Markup  # its Markdown as HTML; empty if it has none
    picture: Picture | None  # its PNG; None if it has none
    description: str  # of the picture, for those who do not see it
    numbers: Comparison | None  # printed values beside measured ones, where its table does not show them
    csv: str  # name of its CSV


def picture(context: Context, output: str) -> Picture:
    """A PNG as a data URI, with its size: the page is laid out before it is decoded.

    Raises:
        RunError: it is missing, or no PNG; the sentence has the command that makes it again.
    """
    content = read_bytes(context, output)
    if not content.startswith(SIGNATURE) or len(content) < 24:
        raise RunError(f"{context.results / output} is no PNG: make it again with `{again(context, output, '--force ')}`")
    width, height = struct.unpack(">II", content[16:24])
    return Picture("data:image/png;base64," + base64.b64encode(content).decode("ascii"), width, height)


def card(context: Context, name: str, artifact: Artifact) -> Card:
    """What the page shows of an artifact.

    Raises:
        RunError: a file of its outputs is missing or unreadable.
    """
    csv, text, png = (output_of(artifact, suffix) for suffix in (".csv", ".md", ".png"))
    rows = read_rows(context, csv)
    table = to_html(read_text(context, text), artifact.label) if text and name not in SEPARATE else Markup("")
    return Card(
        name=name, label=artifact.label, caption=build_caption(context, artifact).removeprefix(f"{artifact.label}. "),
        table=table, picture=picture(context, png) if png else None,
        description=f"{artifact.label}: {artifact.caption} The numbers are in {csv}.",
        numbers=None if table or name in SEPARATE else comparison(rows), csv=csv,
    )


def groups(cards: Mapping[str, Card], artifacts: Mapping[str, Artifact]) -> list[tuple[str, str, list[Card]]]:
    """Cards by what they are: for each group an id, its heading, and its cards; empty groups are left out."""
    found = [
        (id, heading, [c for name, c in cards.items() if group(artifacts[name]) == i and name not in SEPARATE])
        for i, (id, heading) in enumerate(GROUPS)
    ]
    return [section for section in found if section[2]]
