"""Stand-ins: tasks that are made of the default corpus, made once and kept in the cache.

A stand-in takes the place of a task whose data no package carries. Each rule sees to it that labels are balanced and that
neither text alone tells the label: both classes take their sentences from the same pool.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from poet.data.corpora.enwik8 import MD5
from poet.data.corpora.wikitext import CLEANER_VERSION
from poet.data.files import exclusive
from poet.finetuning.tasks.articles import Article, articles
from poet.finetuning.tasks.contract import SPLITS, Example, Origin, Task, TaskData, serialized
from poet.system.files import atomic_path

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
        cache: where the corpus lies, and the stand-in is kept.
        make: gives the examples of a split, in their final order, from its articles.
        train_articles: at most so many are read for the train split; None for all.

    Raises:
        DataError: the corpus cannot be had, or is damaged.
    """
    path = cache / "tasks" / f"{task.name}-{_version()}.jsonl"
    with exclusive(path.parent):
        found = _kept(path)
        if found is None:
            found = {split: list(make(list(articles(cache, split, train_articles if split == "train" else None)), split)) for split in SPLITS}
            _keep(path, found)
    return TaskData(task.name, **found, origin=Origin("stand-in", f"stand-in: {rule}, from articles of enwik8"))


def _version() -> str:
    """Which text and which rules a kept stand-in was made by: another version is made anew."""
    digest = hashlib.sha256(f"{MD5} {CLEANER_VERSION}".encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _keep(path: Path, found: dict[str, list[Example]]) -> None:
    lines = [serialized(example) for split in SPLITS for example in found[split]]
    first = {"sha256": hashlib.sha256(b"".join(lines)).hexdigest(), "train": len(found["train"])}
    with atomic_path(path) as temporary:
        temporary.write_bytes(json.dumps(first).encode() + b"\n" + b"".join(lines))


def _kept(path: Path) -> dict[str, list[Example]] | None:
    """What was kept, or None where it is not there or not as it was written: making it again is cheap."""
    if not path.exists():
        return None
    head, _, body = path.read_bytes().partition(b"\n")
    try:
        first = json.loads(head)
    except ValueError:
        return None
    if first.get("sha256") != hashlib.sha256(body).hexdigest():
        return None
    examples = [Example(tuple(texts), target) for texts, target in map(json.loads, body.splitlines())]
    return {"train": examples[: first["train"]], "validation": examples[first["train"] :]}
