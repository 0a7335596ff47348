"""From a MediaWiki XML dump to prose.

A dump is cleaned page by page with precompiled regular expressions: a real wikitext parser is one to two orders of
magnitude slower, and a language model needs readable sentences, not a faithful page. The order of the steps matters: what
encloses other markup (comments, templates, tables) goes before what it encloses (links, quotes, tags), and nested
constructs are removed from the innermost outwards.

Headings are kept, each as a line of its own, since they are language and give the paragraph after them its subject;
sections that hold only links and literature (``References``, ``External links``, ...) are dropped with their headings. Items
of lists are kept where they end as a sentence does: the others are names, titles and dates.
"""

import html
import re
from collections.abc import Iterator
from typing import BinaryIO

from poet.data.workers import workers

# Raise this whenever the output of the cleaner changes: cached articles and prepared data sets are then remade.
CLEANER_VERSION = 1
# Pages with less prose than this are stubs of lists, tables and disambiguations.
MINIMUM_CHARACTERS = 200

_TITLE = re.compile(r"<title>(.*?)</title>")
_TEXT = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)
_NAMESPACE = re.compile(
    r"(?:Media|Special|(?:User|Wikipedia|Image|MediaWiki|Template|Help|Category|Portal)(?: talk)?|Talk):"
)
_REDIRECT = re.compile(r"\s*#\s*redirect", re.IGNORECASE)

# Removed with what they contain: it is not prose, or (mathematics, source code) not English.
_OPAQUE = "ref|math|pre|gallery|timeline|imagemap|hiero|script|style|source|code"
_REMOVED = re.compile(
    rf"<!--.*?-->|<(?:{_OPAQUE})\b[^<>]*/>|<({_OPAQUE})\b[^<>]*>.*?</\1\s*>", re.DOTALL | re.IGNORECASE
)
_TEMPLATE = re.compile(r"\{\{[^{}]*(?:(?:\{(?!\{)|\}(?!\}))[^{}]*)*\}\}(?:\}(?!\}))?")
_TABLE = re.compile(r"\{\|[^{|]*(?:(?:\{(?!\|)|\|(?!\}))[^{|]*)*\|\}")
_HTML_TABLE = re.compile(r"<table\b[^<]*(?:<(?!/?table\b)[^<]*)*</table\s*>", re.IGNORECASE)
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_EXTERNAL_LINK = re.compile(r"\[(?:https?|ftp|gopher|news|irc|mailto):(?://)?[^\s\[\]]*([^\[\]\n]*)\]", re.IGNORECASE)
_URL = re.compile(r"(?:https?|ftp)://[^\s<>|\]]+")
_MEDIA_LINK = re.compile(r"\s*(?:image|file|media|category)\s*:", re.IGNORECASE)
# Editions in other languages: codes of two or three letters, and the longer ones of 2006.
_LANGUAGE_LINK = re.compile(
    r"\s*(?:[a-z]{2,3}|simple|tokipona|zh-[a-z-]+|roa-rup|fiu-vro|be-x-old|map-bms|nds-nl|bat-smg|cbk-zam):"
)
_PREFIX = re.compile(r"\s*(?:wikt|wiktionary|wikisource|wikibooks|wikiquote|commons|meta|wikipedia|[wsbqmn]):", re.I)
_QUOTES = re.compile(r"'{2,}")
_BREAK = re.compile(r"<(?:br|p|hr|li|div|tr)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MAGIC = re.compile(r"__[A-Z]+__|~~~~+")
# What the removals leave: unbalanced braces and brackets, rows of tables whose ends were missing.
_ROW = re.compile(r"^[ \t:*#]*(?:\{?\||!|\}).*$", re.MULTILINE)
_STRAY = re.compile(r"\{\{+[^\n{}]*|\}\}+|\[\[+|\]\]+|\{\||\|\}")
_HEADING = re.compile(r"^(={1,6})[ \t]*(.*?)[ \t]*=+[ \t]*$")
_DROPPED_SECTION = re.compile(
    r"(?:see also|related (?:topics|articles)|external (?:links?|resources?)|references?(?: and .*)?"
    r"|further reading"
    r"|(?:foot)?notes(?: and references)?|bibliography|sources|(?:discography|filmography)|web ?links|links"
    r"|(?:works )?cited|citations|literature|gallery)\W*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^[*#:;\s]+")
_SENTENCE_END = re.compile(r"[.!?:;][\"')\u201d]*$")
_EMPTY_PARENTHESES = re.compile(r"\(\s*[,;:.\s]*\s*\)|\[\s*\]")
_OPENING = re.compile(r"\(\s*[,;:]*\s*(?=\S)")
_SPACES = re.compile(r"[ \t\u00a0\u200e\u200f]+")
_SPACE_BEFORE = re.compile(r" +([,.;:!?)](?:\s|$))")
_WORD = re.compile(r"[^\W\d_]{2}")


def pages(dump: BinaryIO, chunk_bytes: int = 1 << 20) -> Iterator[str]:
    """Yields each complete ``<page>`` element of a dump as text; a last page that the dump cuts off is left out."""
    rest = b""
    while chunk := dump.read(chunk_bytes):
        *complete, rest = (rest + chunk).split(b"</page>")
        for page in complete:
            yield page.decode("utf-8", errors="replace")


def clean_page(page: str) -> tuple[str, str] | None:
    """(title, prose) of one ``<page>`` element, or None where it is no article or has too little prose."""
    title, text = _TITLE.search(page), _TEXT.search(page)
    if not title or not text:
        return None
    name = _unescape_xml(title[1])
    wikitext = _unescape_xml(text[1])
    if _NAMESPACE.match(name) or _REDIRECT.match(wikitext):
        return None
    prose = clean_text(wikitext)
    return (name, prose) if len(prose) >= MINIMUM_CHARACTERS else None


def clean_text(text: str) -> str:
    """The prose of an article's wikitext: paragraphs, list items and headings, one a line, without markup."""
    text = _REMOVED.sub("", text)
    text = _innermost_first(_TEMPLATE, "", text)
    text = _innermost_first(_TABLE, "\n", text)
    text = _innermost_first(_HTML_TABLE, "\n", text)
    text = _EXTERNAL_LINK.sub(r"\1", text)
    text = _innermost_first(_LINK, _visible, text)
    text = _QUOTES.sub("", text)
    text = _TAG.sub("", _BREAK.sub("\n", text))
    text = _STRAY.sub("", _ROW.sub("", _MAGIC.sub("", text)))
    # The dump escapes the wikitext, which itself has entities (&nbsp;, &mdash;): these are still left.
    text = _TAG.sub("", html.unescape(text)) if "&" in text else text
    text = _URL.sub("", text)
    return "\n".join(_lines(text))


def articles(dump: BinaryIO, processes: int = 2) -> Iterator[tuple[str, str]]:
    """Yields (title, prose) of every article in the order of the dump, cleaned in ``processes`` processes."""
    with workers(processes) as pool:
        yield from filter(None, pool.map(clean_page, pages(dump), chunksize=64))


def _unescape_xml(text: str) -> str:
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#039;", "'"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return text


def _innermost_first(pattern: re.Pattern, replacement, text: str) -> str:
    """Replaces until nothing matches. Each pass shortens the text or the nesting, and nesting is shallow."""
    count = 1
    while count:
        text, count = pattern.subn(replacement, text)
    return text


def _visible(link: re.Match) -> str:
    """The text that a reader sees of ``[[target|label]]``."""
    target, bar, label = link[1].partition("|")
    if _MEDIA_LINK.match(target) or (not bar and _LANGUAGE_LINK.match(target)):
        return ""
    return label.rpartition("|")[2] if bar else _PREFIX.sub("", target.lstrip(":"), count=1)


def _lines(text: str) -> Iterator[str]:
    """Yields the tidied lines that contain words, without dropped sections and without headings that no text follows."""
    headings: list[str] = []  # the last heading, until a line of text follows it
    dropped_level = 0
    for line in text.split("\n"):
        heading = _HEADING.match(line)
        if heading:
            level, name = len(heading[1]), heading[2].strip(" =")
            if dropped_level and level > dropped_level:
                continue
            dropped_level = level if _DROPPED_SECTION.fullmatch(name) else 0
            headings = [] if dropped_level or not name else [_tidy(name)]
            continue
        is_item = line.startswith(("*", "#"))
        line = _tidy(_BULLET.sub("", line))
        if dropped_level or not _WORD.search(line) or (is_item and not _SENTENCE_END.search(line)):
            continue
        yield from headings
        headings = []
        yield line


def _tidy(line: str) -> str:
    line = _SPACES.sub(" ", line)
    if "(" in line or "[" in line:
        line = _OPENING.sub("(", _EMPTY_PARENTHESES.sub("", line))
        line = _SPACES.sub(" ", line)
    return _SPACE_BEFORE.sub(r"\1", line).strip()
