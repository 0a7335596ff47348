"""A table or figure on the page: its title, its layout, its picture, its printed and measured numbers, its claims."""

import base64
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from analyses.report.markup import to_html
from analyses.report.numbers import comparison
from analyses.report.sources import GROUPS, group, output_of
from analyses.report.entries import Shown
from suite.artifact import Artifact
from suite.check.tables import read
from suite.context import Context
from suite.recorded.marking import caption as build_caption
from suite.recorded.origin import sentence

#: Artifacts with a section of their own.
SEPARATE = ("errata", "theory")
_SENTENCE_END = re.compile(r"(?<=\.)\s+(?=[A-Z])")


#: An artifact as the page shows it, by the names that the templates use.
Card = dict[str, Any]


def picture(path: Path) -> dict[str, Any]:
    """A PNG as a data URI, with its size in pixels, so that a browser can lay the page out before it decodes the picture."""
    content = path.read_bytes()
    width, height = Image.open(io.BytesIO(content), formats=["PNG"]).size
    return {"source": data_uri("image/png", content), "width": width, "height": height}


def data_uri(kind: str, content: bytes) -> str:
    """A file as a data URI."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def card(context: Context, name: str, artifact: Artifact, claims: Sequence[Shown]) -> Card:
    """The card of an artifact."""
    csv, markdown, png, txt = (output_of(artifact, suffix) for suffix in (".csv", ".md", ".png", ".txt"))
    rows = read(context.results / csv)
    title, scale = _SENTENCE_END.split(artifact.caption)[0], artifact.described(context.scale).partition(f"{artifact.caption} ")[2]
    # The page says each thing once: the title in the heading, scale and origin of the runs at its top, and in a caption nothing that the table has.
    said = (f"{artifact.label}. {title}", title, scale, sentence(context.home, artifact.specs(context.scale)))
    text = _without((context.results / markdown).read_text(encoding="utf-8"), said) if markdown and name not in SEPARATE else ""
    table = to_html(text, artifact.label)
    caption = _without((context.results / txt).read_text(encoding="utf-8") if txt else build_caption(context, artifact), said)
    kept = (" ".join(s for s in _SENTENCE_END.split(part.strip()) if s not in text) for part in caption.split("\n\n"))
    return {
        "name": name, "label": artifact.label, "title": title.removesuffix("."), "caption": list(filter(None, kept)), "table": table,
        "picture": picture(context.results / png) if png else None, "description": f"{artifact.label}: {artifact.caption} The numbers are in {csv}.",
        "numbers": None if "<table" in table or name in SEPARATE else comparison(rows), "csv": csv,
        "data": data_uri("text/csv", (context.results / csv).read_bytes()), "claims": claims,
    }


def _without(text: str, sentences: Sequence[str]) -> str:
    """A text without the first occurrence of each of some sentences."""
    for said in filter(None, sentences):
        text = text.replace(said, "", 1)
    return text


def groups(cards: Mapping[str, Card], artifacts: Mapping[str, Artifact]) -> list[tuple[str, str, list[Card]]]:
    """The cards by group: id, heading and cards of each; empty groups are left out."""
    found = [
        (id, heading, [c for name, c in cards.items() if group(artifacts[name]) == i and name not in SEPARATE])
        for i, (id, heading) in enumerate(GROUPS)
    ]
    return [section for section in found if section[2]]
