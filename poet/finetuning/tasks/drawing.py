"""Choices made by hashes: the same on every machine, in every process and in any order of calls."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import TypeVar

from poet.finetuning.tasks.contract import Example, place

T = TypeVar("T")


def draw(count: int, *keys: str | int) -> int:
    """A number from 0 to ``count - 1``, decided by the keys."""
    digest = hashlib.sha256("\0".join(map(str, keys)).encode()).digest()
    return int.from_bytes(digest[:8], "big") % count


def pick(options: Sequence[T], *keys: str | int) -> T:
    """One of the options, decided by the keys."""
    return options[draw(len(options), *keys)]


def balanced(examples: Iterable[Example], classes: int, most: int | None = None) -> list[Example]:
    """Equally many examples of each class, alternating, each class in the order of its hashes: any first part is balanced too.

    Args:
        examples: of all classes; a text or pair that occurs twice is taken once.
        classes: number of classes.
        most: the largest number of examples.
    """
    unique = {example.texts: example for example in examples}.values()
    groups = [sorted((e for e in unique if e.target == number), key=place) for number in range(classes)]
    count = min(map(len, groups)) if most is None else min(most // classes, *map(len, groups))
    return list(itertools.chain.from_iterable(zip(*(group[:count] for group in groups), strict=True)))
