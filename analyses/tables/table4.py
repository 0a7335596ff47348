"""Table 4: AdamW- and POET-pretrained models, finetuned on GLUE in full, by OFT and by POET.

The pretrained models are Table 2's own runs, which keep their weights. The paper does not name the model's size, the variant of POET, the
batch, the sequence length or the schedule: ``finetuning`` of the scale's file has what is taken here. Each number is that of
the last epoch on GLUE's validation set (MNLI: matched), or on what stands in for it.

Beside each task stands what one answer for all examples is worth. A cell has learned where its mean is above that by more than
:data:`LEARNED` standard deviations over seeds; claims compare the cells in which one of the two models has.
"""

import itertools
import math
import statistics
from collections.abc import Iterable

import pandas as pd

from analyses.common.evidence import largest_of
from analyses.common.layout import markdown_page, markdown_table, measured_columns, write_table
from analyses.common.published import read_published
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context
from suite.finetuning import bases, finetuning
from suite.scale import Scale
from suite.statistics import paired_interval

#: Printed name of a finetuning method to its key.
METHODS = {"Full FT": "full", "OFT": "oft", "POET": "poet"}
#: How many standard deviations above one answer for all count as learned. Fixed before any run.
LEARNED = 2.0
PRINTED = read_published("table4").set_index(["finetuning", "pretraining"]).astype(float)
#: Key of a task by its printed name.
NAMES = {TASKS[key].label: key for key in TASKS if TASKS[key].label in PRINTED.columns}
Cell = tuple[str, str, str]


def pretraining(base: RunSpec) -> str:
    """What Table 4 calls a pretrained run: AdamW or POET."""
    return {"adamw": "AdamW", "poet": "POET"}[base.method]


def cells(scale: Scale) -> dict[Cell, list[FinetuningSpec]]:
    """The runs of each (finetuning, pretraining, task), by seed, at the printed rate."""
    given = scale.settings.finetuning
    return {
        (method, pretraining(base), task): [finetuning(scale, base, NAMES[task], METHODS[method], seed) for seed in range(given.seeds)]
        for base, method, task in itertools.product(bases(scale), METHODS, PRINTED.columns)
    }


def table(context: Context) -> pd.DataFrame:
    """One line a cell."""
    lines = []
    for (method, model, task), specs in cells(context.scale).items():
        records = [context.record(spec) for spec in specs]
        values, first = [record["metric"] for record in records], records[0]
        columns = measured_columns(values)
        mean, low, high = paired_interval(values)
        nothing = statistics.fmean(record["without_learning"] for record in records)
        learned = mean - nothing > (LEARNED * columns["std"] if columns["n"] > 1 else math.inf)
        lines.append({
            "finetuning": method, "pretraining": model, "task": task, "rate": "as printed", "published": PRINTED.loc[(method, model), task],
            **columns, "low": low, "high": high, "unit": TASKS[NAMES[task]].metric, "without_learning": nothing,
            "learned": "yes" if learned else "no", "learning_rate": specs[0].lr, "trainable": first["trainable_parameters"],
            "train_examples": first["examples"]["train"], "validation_examples": first["examples"]["validation"],
            "data": first["origin"]["kind"], "origin": first["origin"]["sentence"], "scale": context.scale.name, "model": specs[0].model, "base": specs[0].base,
        })
    return pd.DataFrame(lines)


def _number(line: object) -> str:
    if line.diverged:
        return f"diverged ({line.diverged} of {line.n + line.diverged})"
    spread = "" if math.isnan(line.std) else f" ± {line.std:.3f}"
    return f"**{line.measured:.3f}**{spread}{'' if line.learned == 'yes' else ' °'}"


def markdown(frame: pd.DataFrame) -> str:
    """As the paper lays it out, published / measured in each cell, and one answer for all below."""
    first, tasks = frame.iloc[0], list(dict.fromkeys(frame.task))
    kinds = dict(zip(frame.task, frame.data, strict=True))
    heads = [f"{task} ({kinds[task]})" for task in tasks]
    rows = []
    for (method, model), part in frame.groupby(["finetuning", "pretraining"], sort=False):
        by_task = {line.task: line for line in part.itertuples()}
        rows.append([method, model, *(f"{by_task[t].published:.3f} / {_number(by_task[t])}" for t in tasks)])
    worth = dict(zip(frame.task, frame.without_learning, strict=True))
    rows.append(["one answer for all", "", *(f"{worth[task]:.3f}" for task in tasks)])
    about = (
        f"{ARTIFACT.caption} Each cell: published / **measured at {first['scale']} scale** on {first.model}, last epoch, mean over {first.n} seeds of "
        f"finetuning ± standard deviation. °: not above one answer for all examples by more than {LEARNED:g} standard deviations, or one seed. "
        f"Learning rate: {first.learning_rate:g}, as printed, for all."
    )
    origins = dict(zip(frame.task, frame.origin, strict=True))
    said = [f"{task}: {origin}" for task, origin in origins.items()]
    return markdown_page(f"{ARTIFACT.label}, {first['scale']} scale", about, markdown_table(["finetuning", "pretraining", *heads], "ll" + "r" * len(heads), rows),
                         fitness(frame), sentences=said)


def fitness(frame: pd.DataFrame) -> str:
    """Whether anything was learned that can be compared."""
    learned = frame.groupby("task").learned.apply(lambda column: (column == "yes").any())
    able = [task for task, found in learned.items() if found]
    if not able:
        return "**No order is judged**: on no task is any cell above one answer for all by more than its scatter."
    return f"Orders are judged on the tasks that some cell has learned: {', '.join(able)}."


def _higher(context: Context, pairs: Iterable[tuple[Cell, Cell]]) -> Evidence:
    """Whether the first of each pair has the higher metric, by the pair where it has it least."""
    frame = context.table("table4").set_index(["finetuning", "pretraining", "task"])
    runs, compared, left = cells(context.scale), [], 0
    for ours, theirs in pairs:
        if "yes" in {frame.loc[ours, "learned"], frame.loc[theirs, "learned"]}:
            ends = ([context.record(spec)["metric"] for spec in runs[cell]] for cell in (ours, theirs))
            compared.append([b - a for a, b in zip(*ends, strict=True)])
        else:
            left += 1
    if not compared:
        return Evidence(effect=math.nan, low=math.nan, high=math.nan, n=0, note="nothing was learned that can be compared")
    return largest_of(compared, note=f"{left} of {left + len(compared)} comparisons left out: nothing was learned" if left else "")


def _poet_pretrained(context: Context) -> Evidence:
    return _higher(context, [((m, "POET", t), (m, "AdamW", t)) for m, t in itertools.product(METHODS, PRINTED.columns)])


def _oft_worse(context: Context) -> Evidence:
    models = ("AdamW", "POET")
    return _higher(context, [((m, model, t), ("OFT", model, t)) for m, model, t in itertools.product(("Full FT", "POET"), models, PRINTED.columns)])


CLAIMS = (
    Claim(
        key="table4-poet-pretrained-better", place="Section 5.2, Table 4", kind="finetuning",
        says="The POET-pretrained model is better than the AdamW-pretrained one on all tasks and by all finetuning methods.",
        rule="Metric of the AdamW-pretrained model minus that of the POET-pretrained one, paired by seed of finetuning, in each cell that one of the two "
        "has learned: the largest mean difference is below zero.",
        unit="metric", region=NEGATIVE, measure=_poet_pretrained,
    ),
    Claim(
        key="table4-oft-worse", place="Section 5.2, Table 4", kind="finetuning",
        says="OFT generally performs worse than full finetuning and POET.",
        rule="Metric of OFT minus that of full finetuning and of POET, paired by seed, in each cell that one of the two has learned: the largest mean "
        "difference is below zero.",
        unit="metric", region=NEGATIVE, measure=_oft_worse,
    ),
)


def build(context: Context) -> None:
    frame = table(context)
    write_table(context, ARTIFACT, frame, markdown(frame))


ARTIFACT = Artifact(
    label="Table 4",
    caption="GLUE scores of AdamW- and POET-pretrained models after finetuning in full, by OFT and by POET.",
    outputs=("table4.csv", "table4.md"),
    runs=bases, finetunings=lambda scale: [spec for specs in cells(scale).values() for spec in specs], build=build, claims=CLAIMS,
)
