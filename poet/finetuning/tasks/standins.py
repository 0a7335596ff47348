"""Stand-ins: tasks that are made of the default corpus.

A stand-in takes the place of a task whose data no package carries. Each rule sees to it that labels are balanced and that
neither text alone tells the label: both classes take their sentences from the same pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from poet.finetuning.tasks.articles import Article, articles
from poet.finetuning.tasks.contract import Example, Origin, Task, TaskData

#: Of the corpus's train articles, this many make a task's train split, and all of the few held-out ones its validation split.
TRAIN_ARTICLES = 4000
#: An article gives at most so many examples: the held-out articles are few.
PER_ARTICLE = {"train": 3, "validation": 12}
#: Examples of a split.
MOST = {"train": 8000, "validation": 1000}


def stand_in(
    task: Task, rule: str, cache: Path, make: Callable[[list[Article], str], Iterable[Example]], train_articles: int | None = TRAIN_ARTICLES
) -> TaskData:
    """A task's stand-in.

    Args:
        task: whose place it takes.
        rule: how it is made, in a clause that tables show.
        cache: where the corpus lies.
        make: gives the examples of a split, in their final order, from its articles.
        train_articles: at most so many are read for the train split; None for all.

    Raises:
        DataError: the corpus cannot be had, or is damaged.
    """
    most = {"train": train_articles, "validation": None}
    found = {split: list(make(list(articles(cache, split, count)), split)) for split, count in most.items()}
    return TaskData(task.name, **found, origin=Origin("stand-in", f"stand-in: {rule}, from articles of enwik8"))
