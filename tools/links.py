"""Links and anchors of Markdown pages: for the site, and for the test of dead links."""

import re
import unicodedata
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt

MARKDOWN = MarkdownIt("commonmark").enable("table")


def documents(root: Path) -> list[Path]:
    """Every page that is at least partly written by hand."""
    single = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "workflow/profiles/README.md")
    return [*(root / name for name in single), *sorted((root / "docs").rglob("*.md"))]


def links(text: str) -> list[str]:
    """Targets of links and pictures in order, links to other sites included."""
    inline = (child for token in MARKDOWN.parse(text) for child in token.children or ())
    targets = (child.attrGet("href") or child.attrGet("src") for child in inline)
    return [target for target in targets if target is not None]


def is_local(target: str) -> bool:
    return not re.match(r"[a-z]+:", target)


def resolve(page: Path, target: str) -> tuple[Path, str]:
    """The file that a page's link points to, and the anchor in it ("" if there is none)."""
    path, _, anchor = target.partition("#")
    return (page.parent / unquote(path)).resolve() if path else page, anchor


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings that GitHub and MkDocs agree on."""
    tokens = MARKDOWN.parse(text)
    titles = [tokens[i + 1].children for i, token in enumerate(tokens) if token.type == "heading_open"]
    headings = ["".join(c.content for c in title if c.type in ("text", "code_inline")) for title in titles]
    unique = [heading for heading in headings if headings.count(heading) == 1]  # GitHub and MkDocs number repeated ones differently
    return {_github(heading) for heading in unique} & {_mkdocs(heading) for heading in unique}


def _github(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _mkdocs(heading: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
