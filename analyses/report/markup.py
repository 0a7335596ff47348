"""The Markdown of tables as HTML: marks get words, tables a box that scrolls, long tables are folded, and HTML in the Markdown is escaped."""

import re
from html import escape

from markdown_it import MarkdownIt
from markupsafe import Markup

from analyses.common.layout import MARKS

#: A mark after a measured (bold) number and the text on its runs. The line break after it is dropped: the page gives a mark its own line.
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
    """An artifact's Markdown as HTML, without its heading, and with the headings of its parts below that of a card. The label names the boxes of its tables for screen readers."""
    html = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"]).render(text)
    # All HTML in the text is escaped. <br>, which the tables use, is the only tag that is restored.
    html = re.sub("<h1>.*?</h1>\n", "", html).replace("h2>", "h4>").replace("&lt;br&gt;", "<br>").replace('style="text-align:right"', 'class="number"')
    html = _MARK.sub(lambda found: found[1] + verdict(found[2]), html)
    return Markup(re.sub("<table>.*?</table>\n", lambda found: _box(found[0], label), html, flags=re.S))
