"""Stand-ins: tasks that are made of the default corpus.

A stand-in takes the place of a task whose data is in no package. Each rule keeps the labels balanced. All classes take their sentences
from the same articles, so one text alone hardly tells the label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from poet.finetuning.tasks.articles import Article, articles
from poet.finetuning.tasks.contract import Example, Origin, Task, TaskData

#: Number of the corpus's train articles that make a task's train split. All of the few held-out articles make its validation split.
TRAIN_ARTICLES = 4000
#: Most examples of one article. It is larger for validation, because the held-out articles are few.
PER_ARTICLE = {"train": 3, "validation": 12}
#: Most examples of a split.
MOST = {"train": 8000, "validation": 1000}


def stand_in(
    task: Task, rule: str, cache: Path, make: Callable[[list[Article], str], Iterable[Example]], train_articles: int | None = TRAIN_ARTICLES
) -> TaskData:
    """A task's stand-in.

    Args:
        task: the task that it replaces.
        rule: how it is made, in a clause that tables show.
        cache: folder of the corpus.
        make: makes the examples of a split, in their final order, from its articles.
        train_articles: most articles that are read for the train split; None for all.

    Raises:
        DataError: the corpus cannot be fetched, or is damaged.
    """
    most = {"train": train_articles, "validation": None}
    found = {split: list(make(list(articles(cache, split, count)), split)) for split, count in most.items()}
    return TaskData(task.name, **found, origin=Origin("stand-in", f"stand-in: {rule}, from articles of enwik8"))
