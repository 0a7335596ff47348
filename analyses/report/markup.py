"""The Markdown of tables as HTML: verdict marks get words, tables a box that scrolls, long ones are folded, and nothing in it is HTML already."""

import re
from html import escape

from markdown_it import MarkdownIt
from markupsafe import Markup

from analyses.common.layout import MARKS

#: A mark after a measured (bold) number and what is said of its runs, and the line break after it: a mark stands on a line of its own.
_MARK = re.compile(rf"(</strong>[^<]*) ([{re.escape(''.join(MARKS.values()))}])(?:<br>|(?=</td>))")
#: A table with more rows is folded.
LONG = 12
_WORDS = {mark: word for word, mark in MARKS.items()}


def verdict(mark: str) -> str:
    """A mark with its word: never colour alone."""
    word = _WORDS[mark]
    return f'<span class="mark {word.replace(" ", "-")}"><span aria-hidden="true">{escape(mark)}</span> {word}</span>'


def _box(table: str, label: str) -> str:
    """A table in a box that scrolls, folded if it is long or has no column of numbers."""
    rows, heads = table.count("<tr>") - 1, re.findall("<th[^>]*>(.*?)</th>", table)
    box = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">\n{table}</div>\n'
    if rows <= LONG and '<th class="number"' in table:
        return box
    return f"<details><summary>Table, {rows} {'row' if rows == 1 else 'rows'}: {', '.join(filter(None, heads))}</summary>\n{box}</details>\n"


def to_html(text: str, label: str) -> Markup:
    """An artifact's Markdown without its heading; screen readers call the box that its table scrolls in by its label."""
    html = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"]).render(text)
    # Everything in it is escaped, but for the tags that are written here; <br> is the one that the tables use.
    html = re.sub("<h1>.*?</h1>\n", "", html).replace("&lt;br&gt;", "<br>").replace('style="text-align:right"', 'class="number"')
    html = _MARK.sub(lambda found: found[1] + verdict(found[2]), html)
    return Markup(re.sub("<table>.*?</table>\n", lambda found: _box(found[0], label), html, flags=re.S))
