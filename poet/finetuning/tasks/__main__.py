"""``python -m poet.finetuning.tasks NAME --source offline --cache data/cache``: shows a task's examples and where they come from."""

import argparse
import sys
import textwrap
from collections import Counter
from pathlib import Path

from poet.finetuning.tasks import TASKS, Task, TaskData, load_task
from poet.finetuning.tasks.contract import SPLITS
from poet.system.errors import command_line


@command_line
def main(arguments: list[str] | None = None) -> int:
    """Return the exit code. 0: done; 2: the user must put something right (one line says what)."""
    parser = argparse.ArgumentParser(prog="python -m poet.finetuning.tasks", description="Show a task's examples.")
    parser.add_argument("name", help=", ".join(TASKS))
    parser.add_argument("--source", default="offline", help="hub, folder:<path> or offline (the default)")
    parser.add_argument("--cache", type=Path, default=Path("data/cache"), help="folder for what is fetched or made")
    for split in SPLITS:
        parser.add_argument(f"--{split}", type=_count, help=f"at most so many examples of the {split} split")
    given = parser.parse_args(arguments)
    limit = {split: getattr(given, split) for split in SPLITS if getattr(given, split) is not None}
    show(load_task(given.name, given.source, given.cache, limit=limit))
    return 0


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of examples, 0 or more")
    return int(text)


def show(data: TaskData) -> None:
    """Print counts, balance, origin and two examples."""
    task = TASKS[data.name]
    print(f"{task.label} ({task.metric}); {data.origin.sentence}")
    for split in SPLITS:
        examples = getattr(data, split)
        print(f"{split}: {len(examples):,} examples{_balance(task, [example.target for example in examples])}")
    for example in data.train[:2]:
        for name, text in zip((*task.columns, task.target), (*example.texts, example.target), strict=True):
            print(f"  {name}: {textwrap.shorten(str(text), 300)}")


def _balance(task: Task, targets: list) -> str:
    """The shares of the classes, or the mean score, or the mean length of summaries."""
    if not targets:
        return ""
    if not task.classes:
        return f", {sum(len(target.split()) for target in targets) / len(targets):.1f} words a summary"
    if task.classes == 1:
        return f", mean score {sum(targets) / len(targets):.2f}"
    counts = Counter(targets)
    return "".join(f", {name} {counts[number] / len(targets):.1%}" for number, name in enumerate(task.class_names))


if __name__ == "__main__":
    sys.exit(main())
