"""The Markdown of tables as HTML: verdict marks get words, tables a box that scrolls, long ones are folded, and nothing in it is HTML already."""

import re
from collections.abc import Iterator, Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from analyses.common.layout import MARKS

#: A mark at the end of a cell's line, after the measured number and what is said of its runs.
_MARK = re.compile(rf"( .*)?\s([{re.escape(''.join(MARKS.values()))}])$")
#: A table with more rows is folded.
LONG = 12
_WORDS = {mark: word for word, mark in MARKS.items()}


def _line_break(state: StateInline, silent: bool) -> bool:
    """``<br>``, the one tag that the tables use."""
    if not state.src.startswith("<br>", state.pos):
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos += len("<br>")
    return True


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
    parser.inline.ruler.before("html_inline", "line_break", _line_break)
    return parser


def _html(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)


def verdict(mark: str) -> str:
    """A mark with its word: never colour alone."""
    word = _WORDS[mark]
    return f'<span class="mark {word.replace(" ", "-")}"><span aria-hidden="true">{escape(mark)}</span> {word}</span>'


def _marked(children: list[Token]) -> Iterator[Token]:
    """The content of a cell, with words for the mark that follows a measured (bold) number."""
    after_bold = after_mark = False
    for token in children:
        if after_mark and token.type == "hardbreak":  # a mark stands on a line of its own
            after_mark = False
            continue
        found = _MARK.fullmatch(token.content) if token.type == "text" and after_bold else None
        if found:
            yield Token("text", "", 0, content=found[1] or "")
            yield _html(verdict(found[2]))
        else:
            yield token
        after_bold, after_mark = token.type == "strong_close", bool(found)


def _box(tokens: Sequence[Token], label: str) -> tuple[str, str]:
    """What stands before and after the table that tokens begin with: a box that scrolls, folded if the table is long or has no column of numbers."""
    own = tokens[: next(i for i, token in enumerate(tokens) if token.type == "table_close")]
    rows = sum(token.type == "tr_open" for token in own) - 1
    start, end = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">\n', "</div>\n"
    if rows <= LONG and any(token.type == "th_open" and "style" in token.attrs for token in own):
        return start, end
    heads = own[: next(i for i, token in enumerate(own) if token.type == "tr_close")]
    named = ", ".join(token.content for token in heads if token.type == "inline" and token.content)
    return f"<details><summary>Table, {rows} {'row' if rows == 1 else 'rows'}: {escape(named)}</summary>\n{start}", f"{end}</details>\n"


def to_html(text: str, label: str) -> Markup:
    """An artifact's Markdown without its heading; screen readers call the box that its table scrolls in by its label."""
    parser = _parser()
    tokens, out = parser.parse(text), []
    cell = heading = False
    after = ""
    for i, token in enumerate(tokens):
        if token.type == "table_open":
            before, after = _box(tokens[i:], label)
            out.append(Token("html_block", "", 0, content=before))
        if token.type in ("td_open", "th_open"):
            cell = token.type == "td_open"
            token.attrs = {"class": "number"} if "style" in token.attrs else {}
        if token.type == "inline" and cell:
            token.children = list(_marked(token.children))
        if token.type == "td_close":
            cell = False
        if token.type in ("heading_open", "heading_close") and token.tag == "h1":
            heading = token.type == "heading_open"
        elif not heading:
            out.append(token)
        if token.type == "table_close":
            out.append(Token("html_block", "", 0, content=after))
    # Everything in it is escaped by the renderer, but for the tags that are written here.
    return Markup(parser.renderer.render(out, parser.options, {}))
