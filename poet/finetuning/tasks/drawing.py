"""Choices that hashes make: the same on every machine, in every process, in any order of asking."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import TypeVar

from poet.finetuning.tasks.contract import Example, place

T = TypeVar("T")


def draw(count: int, *keys: str | int) -> int:
    """A number from 0 to ``count - 1`` that the keys decide."""
    digest = hashlib.sha256("\0".join(map(str, keys)).encode()).digest()
    return int.from_bytes(digest[:8], "big") % count


def pick(options: Sequence[T], *keys: str | int) -> T:
    """One of the options, that the keys decide."""
    return options[draw(len(options), *keys)]


def balanced(examples: Iterable[Example], classes: int, most: int | None = None) -> list[Example]:
    """As many examples of each class, in turns, each class in the order of its hashes: any first part is balanced too.

    Args:
        examples: of all classes; a text or pair that comes twice is taken once.
        classes: how many there are.
        most: at most so many examples.
    """
    unique = {example.texts: example for example in examples}.values()
    groups = [sorted((e for e in unique if e.target == number), key=place) for number in range(classes)]
    count = min(map(len, groups)) if most is None else min(most // classes, *map(len, groups))
    return list(itertools.chain.from_iterable(zip(*(group[:count] for group in groups), strict=True)))
