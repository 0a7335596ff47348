"""The default corpus's articles as paragraphs and sentences, from which stand-ins are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from poet.data.corpora.enwik8 import Enwik8, is_validation

#: Fewest and most words of a sentence that stand-ins use.
SHORTEST, LONGEST = 8, 40
_BOUNDARY = re.compile(r"[.!?][\"'\u201d)]*\s+(?=[\"'(\u201c]?[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Za-z]|\.[A-Za-z]|\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Gen|Col|Capt|Lt|Rev|Hon|Gov|Sen|Mt|Ft|vs|etc|cf|ca|al|approx|No|Vol"
    r"|Co|Inc|Ltd|Corp|Fig|ed|eds|pp|Jan|Feb|Mar|Apr|Aug|Sept|Sep|Oct|Nov|Dec))\.$"
)
_WHOLE = re.compile(r"[\"\u201c(]?[A-Z][^|={}<>\[\]]*[.!?][\"\u201d)]?")
_NAVIGATION = re.compile(r"(?:This (?:article|page) |For |See |Main article|\(For )[^.]*(?:\babout\b|\bsee\b|\barticle\b|disambiguation)")
_HOLE = re.compile(r"\(\s*[,;)]|\s[,;:.]\s|,\s*,|\bis a\s*[,.]")  # left where the corpus's cleaner removed markup


@dataclass(frozen=True, slots=True)
class Article:
    """An article's prose without headings and lists.

    Attributes:
        title: what it is called.
        paragraphs: each a tuple of its sentences.
    """

    title: str
    paragraphs: tuple[tuple[str, ...], ...]


def articles(cache: Path, split: str, most: int | None = None) -> Iterator[Article]:
    """The articles of a split that have prose, in the corpus's order, which hashes of the titles decide.

    The splits are the corpus's own, so pretraining does not see the articles on which finetuning is measured.

    Args:
        cache: folder that has the corpus, or gets it.
        split: "train" or "validation".
        most: the largest number of articles.

    Raises:
        DataError: the corpus cannot be fetched, or is damaged.
    """
    count = 0
    for title, prose in Enwik8(cache=cache).articles():
        if is_validation(title) != (split == "validation"):
            continue
        paragraphs = tuple(tuple(sentences(line)) for line in prose.split("\n") if _is_paragraph(line))
        if paragraphs:
            yield Article(title, paragraphs)
            count += 1
        if count == most:
            return


def _is_paragraph(line: str) -> bool:
    """Whether a line of prose is text, not a heading, an entry of a list or table, or a pointer to another article."""
    return len(line.split()) >= SHORTEST and line[-1] in ".!?\"')" and not _NAVIGATION.match(line)


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences of a paragraph. The stop after a title, an initial or an abbreviation does not end a sentence."""
    start = 0
    for boundary in _BOUNDARY.finditer(paragraph):
        if _ABBREVIATION.search(paragraph, start, boundary.start() + 1):
            continue
        yield paragraph[start : boundary.end()].rstrip()
        start = boundary.end()
    yield paragraph[start:]


def usable(sentence: str, longest: int = LONGEST) -> bool:
    """Whether a sentence is complete, of ordinary length, and without gaps where markup was removed."""
    return bool(
        SHORTEST <= len(sentence.split()) <= longest
        and _WHOLE.fullmatch(sentence)
        and not _HOLE.search(sentence)
        and sentence.count("(") == sentence.count(")")
        and sentence.count('"') % 2 == 0
    )
