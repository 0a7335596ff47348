"""The cells of Table 4: which finetuning runs stand for each, at the printed rate and at rates tuned alike."""

import itertools

from analyses.common.published import read_published
from poet.finetuning.methods import FINETUNERS
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from poet.training.spec import RunSpec
from suite.finetuning import METHODS_OF_TABLE4, PRINTED_LR, bases, finetuning, tuned_rates
from suite.scale import Scale

#: Printed name of a finetuning method to its key.
METHODS = {FINETUNERS[key].label: key for key in METHODS_OF_TABLE4}
PRINTED_RATE, TUNED = "as printed", "tuned alike"
PRINTED = read_published("table4").set_index(["finetuning", "pretraining"]).astype(float)
#: Key of a task by its printed name.
NAMES = {task.label: key for key, task in TASKS.items() if task.label in PRINTED.columns}
#: (rate, finetuning, pretraining, task).
Cell = tuple[str, str, str, str]


def pretraining(base: RunSpec) -> str:
    """What Table 4 calls a pretrained run: AdamW or POET."""
    return {"adamw": "AdamW", "poet": "POET"}[base.method]


def cells(scale: Scale) -> dict[Cell, list[FinetuningSpec]]:
    """The runs of each cell, by seed."""
    found, tuned, seeds = {}, tuned_rates(scale), range(scale.settings.finetuning.seeds)
    for base, (label, method), (name, task) in itertools.product(bases(scale), METHODS.items(), NAMES.items()):
        rates = {PRINTED_RATE: PRINTED_LR}
        if tuned:
            rates[TUNED], _ = tuned[base.variant, task, method]
        for rate, lr in rates.items():
            found[rate, label, pretraining(base), name] = [finetuning(scale, base, task, method, seed, lr) for seed in seeds]
    return found
