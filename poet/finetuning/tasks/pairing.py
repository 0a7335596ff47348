"""Sentences that can be made to say another thing, in pairs, and partners in other articles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from poet.finetuning.tasks.articles import Article, usable
from poet.finetuning.tasks.drawing import draw
from poet.finetuning.tasks.rewording import Edit, core_end, full_end, reversal


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

    @property
    def is_longer(self) -> bool:
        """Whether the sentence says more than its first part."""
        return self.core < full_end(self.text)

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


def statement_pairs(article: Article, most: int, accept: Callable[[Statement], bool]) -> Iterator[tuple[Statement, Statement]]:
    """At most so many statements of an article that are accepted, each with another one of them that a hash decides."""
    texts = dict.fromkeys(text for paragraph in article.paragraphs for text in paragraph)
    found = list(itertools.islice((s for s in map(statement, texts) if s and accept(s)), most))
    if len(found) > 1:
        for index, one in enumerate(found):
            yield one, found[another(found, index, one.text)]


def another(items: Sequence, index: int, *keys: str | int) -> int:
    """The place of an item other than that at ``index``, that the keys decide; there have to be two or more."""
    return (index + 1 + draw(len(items) - 1, "another", *keys)) % len(items)
