"""The cells of Table 12: which finetuning runs stand for each, and what is printed."""

from analyses.common.published import read_published
from poet.finetuning.rouge import METRICS
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from suite.scale import Scale
from suite.summarization import METHODS_OF_TABLE12, TASKS_OF_TABLE12, summarization

PRINTED = read_published("table12").set_index("method")
#: Printed name of a method to its key; both lists have the paper's order.
METHODS = dict(zip(PRINTED.index, METHODS_OF_TABLE12, strict=True))
#: Printed name of a data set to its key, in the paper's order.
NAMES = {TASKS[key].label: key for key in sorted(TASKS_OF_TABLE12, reverse=True)}
#: What each metric of ``poet.finetuning.rouge`` is called; the paper has no column for the last.
LABELS = dict(zip(METRICS, ("ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-Lsum"), strict=True))
#: Printed name of method and data set.
Cell = tuple[str, str]


def cells(scale: Scale) -> dict[Cell, list[FinetuningSpec]]:
    """The runs of each cell, by seed."""
    seeds = range(scale.settings.summarization.seeds)
    return {(label, name): [summarization(scale, task, method, seed) for seed in seeds] for label, method in METHODS.items() for name, task in NAMES.items()}
