"""Pairs of sentences that a paragraph gives, and partners in other articles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poet.finetuning.tasks.articles import Article, usable
from poet.finetuning.tasks.drawing import draw
from poet.finetuning.tasks.rewording import Edit, core_end, reversal


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that can be made to say another thing.

    Attributes:
        text: the sentence.
        core: where its first part that can stand alone ends.
        edit: what makes that part say another thing.
    """

    text: str
    core: int
    edit: Edit

    def whole(self, other: bool) -> str:
        """The sentence, or the other thing."""
        return self.edit.on(self.text) if other else self.text

    def short(self, other: bool) -> str:
        """Its first part that can stand alone, or the other thing that this can say."""
        core = self.text[: self.core]
        return (self.edit.on(core) if other else core) + "."


def statement(sentence: str) -> Statement | None:
    """A usable sentence as a :class:`Statement`; None where nothing in its first part can be reversed."""
    if not usable(sentence):
        return None
    end = core_end(sentence)
    edit = reversal(sentence[:end])
    return Statement(sentence, end, edit) if edit else None


def statement_pairs(article: Article, most: int) -> Iterator[tuple[Statement, Statement]]:
    """Two statements of one paragraph, in an order that a hash decides; at most so many pairs, none from one paragraph twice."""
    count = 0
    for paragraph in article.paragraphs:
        found = list(filter(None, map(statement, paragraph)))
        if len(found) < 2:
            continue
        if count == most:
            return
        first = draw(len(found), "statement", article.title, paragraph[0])
        second = (first + 1 + draw(len(found) - 1, "other statement", article.title, paragraph[0])) % len(found)
        yield found[first], found[second]
        count += 1


def another(items: Sequence, index: int, *keys: str | int) -> int:
    """The place of an item other than that at ``index``, that the keys decide; there have to be two or more."""
    return (index + 1 + draw(len(items) - 1, "another", *keys)) % len(items)
