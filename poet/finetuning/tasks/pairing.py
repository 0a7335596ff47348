"""Sentences with a reversed version, in pairs, and the choice of partners."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from poet.finetuning.tasks.articles import Article, usable
from poet.finetuning.tasks.drawing import draw
from poet.finetuning.tasks.rewording import Edit, core_end, full_end, reversal


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with a reversed version, which says another thing.

    Attributes:
        text: the sentence.
        core: end of its first part, which can stand alone.
        edit: the edit, inside that part, that makes the reversed version.
    """

    text: str
    core: int
    edit: Edit

    @property
    def is_longer(self) -> bool:
        """Whether the sentence says more than its first part."""
        return self.core < full_end(self.text)

    def whole(self, other: bool) -> str:
        """The sentence; its reversed version if ``other``."""
        return self.edit.on(self.text) if other else self.text

    def short(self, other: bool) -> str:
        """The first part of the sentence; the reversed version of this part if ``other``."""
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
    """The first ``most`` accepted statements of an article, each with another of them that a hash decides."""
    texts = dict.fromkeys(text for paragraph in article.paragraphs for text in paragraph)
    found = list(itertools.islice((s for s in map(statement, texts) if s and accept(s)), most))
    if len(found) > 1:
        for index, one in enumerate(found):
            yield one, found[another(found, index, one.text)]


def another(items: Sequence, index: int, *keys: str | int) -> int:
    """The index of an item other than ``index``, decided by the keys; there have to be two items or more."""
    return (index + 1 + draw(len(items) - 1, "another", *keys)) % len(items)
