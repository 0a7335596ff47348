"""Table 4: AdamW- and POET-pretrained models, finetuned on GLUE in full, by OFT and by POET.

The pretrained models are Table 2's own runs, which keep their weights. The paper does not name the model's size, the variant of POET, the
batch, the sequence length or the schedule: ``finetuning`` of the scale's file has what is taken here. Each number is that of
the last epoch on GLUE's validation set (MNLI: matched), or on what stands in for it.

Two rates: "as printed", 2e-5 for everything, and "tuned alike", one from a search for each cell (``suite.tuning.finetuning``; ``make
results/<scale>/finetuning_rates.csv`` and ``make record``). A scale that was not tuned has the first alone.

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
from poet.finetuning.methods import FINETUNERS
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context
from suite.finetuning import METHODS_OF_TABLE4, PRINTED_LR, bases, finetuning, tuned_rates
from suite.scale import Scale
from suite.statistics import paired_interval

#: Printed name of a finetuning method to its key.
METHODS = {FINETUNERS[key].label: key for key in METHODS_OF_TABLE4}
PRINTED_RATE, TUNED = "as printed", "tuned alike"
#: How many standard deviations above one answer for all count as learned. Fixed before any run.
LEARNED = 2.0
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


def table(context: Context) -> pd.DataFrame:
    """One line a cell."""
    lines, tuned, models = [], tuned_rates(context.scale), {pretraining(base): base for base in bases(context.scale)}
    for (rate, method, model, task), specs in sorted(cells(context.scale).items(), key=lambda item: item[0][0]):
        records = [context.record(spec) for spec in specs]
        values, first = [record["metric"] for record in records], records[0]
        columns = measured_columns(values)
        mean, low, high = paired_interval(values)
        nothing = statistics.fmean(record["without_learning"] for record in records)
        learned = mean - nothing > (LEARNED * columns["std"] if columns["n"] > 1 else math.inf)
        inside = rate == PRINTED_RATE or tuned[models[model].variant, NAMES[task], METHODS[method]][1]
        lines.append({
            "rate": rate, "finetuning": method, "pretraining": model, "task": task, "published": PRINTED.loc[(method, model), task],
            **columns, "low": low, "high": high, "unit": TASKS[NAMES[task]].metric, "without_learning": nothing,
            "learned": "yes" if learned else "no", "learning_rate": specs[0].lr, "at_grid_end": "" if inside else "lr",
            "trainable": first["trainable_parameters"], "train_examples": first["examples"]["train"],
            "validation_examples": first["examples"]["validation"], "data": first["origin"]["kind"], "origin": first["origin"]["sentence"],
            "scale": context.scale.name, "model": specs[0].model, "base": specs[0].base,
        })
    return pd.DataFrame(lines)


def _number(line: object) -> str:
    if line.diverged:
        return f"diverged ({line.diverged} of {line.n + line.diverged})"
    spread = "" if math.isnan(line.std) else f" ± {line.std:.3f}"
    marks = ("" if line.learned == "yes" else " °") + (" \\*" if line.at_grid_end else "")
    return f"**{line.measured:.3f}**{spread}{marks}"


def markdown(frame: pd.DataFrame) -> str:
    """As the paper lays it out, published / measured in each cell, and one answer for all below; once for each rate."""
    first = frame.iloc[0]
    about = (
        f"{ARTIFACT.caption} Each cell: published / **measured at {first['scale']} scale** on {first.model}, last epoch, mean over {first.n} seeds of "
        f"finetuning ± standard deviation. °: not above one answer for all examples by more than {LEARNED:g} standard deviations, or one seed. "
        f"Learning rate as printed: {PRINTED_LR:g} for all; tuned alike: from a search of its own for each cell (\\*: chosen at an end of what was tried)."
    )
    parts = []
    for rate, part in frame.groupby("rate", sort=False):
        parts += [f"## Learning rate {rate}", _layout(part), fitness(part)]
    if TUNED not in set(frame.rate):
        parts.append(f"No rates tuned alike at {first['scale']} scale.")
    origins = dict(zip(frame.task, frame.origin, strict=True))
    return markdown_page(f"{ARTIFACT.label}, {first['scale']} scale", about, *parts, sentences=[f"{task}: {origin}" for task, origin in origins.items()])


def _layout(frame: pd.DataFrame) -> str:
    tasks, kinds = list(dict.fromkeys(frame.task)), dict(zip(frame.task, frame.data, strict=True))
    heads, rows = [f"{task} ({kinds[task]})" for task in tasks], []
    for (method, model), part in frame.groupby(["finetuning", "pretraining"], sort=False):
        by_task = {line.task: line for line in part.itertuples()}
        rows.append([method, model, *(f"{by_task[t].published:.3f} / {_number(by_task[t])}" for t in tasks)])
    worth = dict(zip(frame.task, frame.without_learning, strict=True))
    rows.append(["one answer for all", "", *(f"{worth[task]:.3f}" for task in tasks)])
    return markdown_table(["finetuning", "pretraining", *heads], "ll" + "r" * len(heads), rows)


def fitness(frame: pd.DataFrame) -> str:
    """Whether anything was learned that can be compared."""
    learned = frame.groupby("task").learned.apply(lambda column: (column == "yes").any())
    able = [task for task, found in learned.items() if found]
    if not able:
        return "**No order is judged**: on no task is any cell above one answer for all by more than its scatter."
    return f"Orders are judged on the tasks that some cell has learned: {', '.join(able)}."


def _higher(context: Context, rate: str, pairs: Iterable[tuple[tuple[str, str, str], tuple[str, str, str]]]) -> Evidence:
    """Whether the first of each pair of cells has the higher metric at a rate, by the pair where it has it least."""
    frame, runs, compared, left = context.table("table4"), cells(context.scale), [], 0
    if rate not in set(frame.rate):
        return _nothing("no rates tuned alike")
    frame = frame[frame.rate == rate].set_index(["finetuning", "pretraining", "task"])
    for pair in pairs:
        if "yes" in set(frame.loc[list(pair), "learned"]) and not frame.loc[list(pair), "at_grid_end"].notna().any():
            ours, theirs = ([context.record(spec)["metric"] for spec in runs[rate, *cell]] for cell in pair)
            compared.append([b - a for a, b in zip(ours, theirs, strict=True)])
        else:
            left += 1
    if not compared:
        return _nothing("nothing was learned that can be compared")
    note = f"{left} of {left + len(compared)} comparisons left out: nothing was learned, or a rate lies at an end of what was tried" if left else ""
    return largest_of(compared, note=note)


def _nothing(note: str) -> Evidence:
    return Evidence(effect=math.nan, low=math.nan, high=math.nan, n=0, note=note)


def _claims(rate: str, suffix: str) -> tuple[Claim, Claim]:
    """The two claims at a rate; only cells of which one was learned, and whose rates lie inside what was tried, are compared."""
    tasks, models, where = list(NAMES), ("AdamW", "POET"), f"learning rate {rate}"
    pretrained = [((method, "POET", task), (method, "AdamW", task)) for method, task in itertools.product(METHODS, tasks)]
    others = [((method, model, task), ("OFT", model, task)) for method, model, task in itertools.product(("Full FT", "POET"), models, tasks)]
    return (
        Claim(
            key=f"table4-poet-pretrained-better{suffix}", place="Section 5.2, Table 4", kind="finetuning",
            says=f"The POET-pretrained model is better than the AdamW-pretrained one on all tasks and by all finetuning methods ({where}).",
            rule="Metric of the AdamW-pretrained model minus that of the POET-pretrained one, paired by seed of finetuning, in each cell that one "
            "of the two has learned: the largest mean difference is below zero.",
            unit="metric", region=NEGATIVE, measure=lambda context: _higher(context, rate, pretrained),
        ),
        Claim(
            key=f"table4-oft-worse{suffix}", place="Section 5.2, Table 4", kind="finetuning",
            says=f"OFT generally performs worse than full finetuning and POET ({where}).",
            rule="Metric of OFT minus that of full finetuning and of POET, paired by seed, in each cell that one of the two has learned: the largest "
            "mean difference is below zero.",
            unit="metric", region=NEGATIVE, measure=lambda context: _higher(context, rate, others),
        ),
    )


CLAIMS = (*_claims(PRINTED_RATE, ""), *_claims(TUNED, "-tuned"))


def build(context: Context) -> None:
    frame = table(context)
    write_table(context, ARTIFACT, frame, markdown(frame))


ARTIFACT = Artifact(
    label="Table 4",
    caption="GLUE scores of AdamW- and POET-pretrained models after finetuning in full, by OFT and by POET.",
    outputs=("table4.csv", "table4.md"),
    runs=bases, finetunings=lambda scale: [spec for specs in cells(scale).values() for spec in specs], build=build, claims=CLAIMS,
)
