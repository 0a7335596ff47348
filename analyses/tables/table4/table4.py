"""Table 4: AdamW- and POET-pretrained models, finetuned on GLUE in full, by OFT and by POET.

The pretrained models are Table 2's own runs, which keep their weights. The paper does not name the model's size, the variant of POET, the
batch, the sequence length or the schedule: ``finetuning`` of the scale's file has what is taken here. Each number is that of
the last epoch on GLUE's validation set (MNLI: matched), or on what stands in for it.

Two rates: "as printed", 2e-5 for everything, and "tuned alike", one from a search for each cell (``suite.tuning.finetuning``; ``make
results/<scale>/finetuning_rates.csv`` and ``make record``). A scale that was not tuned has the first alone.

Beside each task stands what one answer for all examples is worth. A cell has learned where its mean over two seeds or more is above that by more than
two standard deviations (:mod:`analyses.common.learned`); claims compare the cells of which one has.
"""

import statistics
from typing import Any

import pandas as pd

from analyses.common.layout import markdown_page, markdown_table, mean_cell, measured_columns
from analyses.common.learned import LEARNED, judged_orders, learned, origins
from analyses.common.plotting import figure_outputs, save_figure, spread_over
from analyses.tables.table4.cells import METHODS, NAMES, PRINTED, PRINTED_RATE, TUNED, cells, pretraining
from analyses.tables.table4.claims import CLAIMS
from analyses.tables.table4.picture import draw
from poet.finetuning.tasks import TASKS
from poet.system.files import write_text
from suite.artifact import Artifact
from suite.context import Context
from suite.finetuning import PRINTED_LR, bases, tuned_rates
from suite.statistics import paired_interval


def table(context: Context) -> pd.DataFrame:
    """One line a cell."""
    lines, tuned, models = [], tuned_rates(context.scale), {pretraining(base): base for base in bases(context.scale)}
    for (rate, method, model, task), specs in sorted(cells(context.scale).items(), key=lambda item: item[0][0]):
        records = [context.record(spec) for spec in specs]
        values, first = [record["metric"] for record in records], records[0]
        columns = measured_columns(values)
        unit, (_, low, high) = TASKS[NAMES[task]].metric, paired_interval(values)
        nothing = statistics.fmean(record["without_learning"] for record in records)
        inside = rate == PRINTED_RATE or tuned[models[model].variant, NAMES[task], METHODS[method]][1]
        lines.append({
            "rate": rate, "finetuning": method, "pretraining": model, "task": task, "published": PRINTED.loc[(method, model), task],
            **columns, "low": low, "high": high, "unit": unit, "without_learning": nothing,
            "learned": "yes" if learned(values, nothing, unit, first["examples"]["validation"]) else "no", "learning_rate": specs[0].lr, "at_grid_end": "" if inside else "lr",
            "trainable": first["trainable_parameters"], "train_examples": first["examples"]["train"],
            "validation_examples": first["examples"]["validation"], "data": first["origin"]["kind"], "origin": first["origin"]["sentence"],
            "scale": context.scale.name, "model": specs[0].model, "base": specs[0].base,
        })
    return pd.DataFrame(lines)


def _number(line: Any) -> str:
    marks = ("" if line.learned == "yes" else " °") + (" \\*" if line.at_grid_end else "")
    return f"{line.published:.3f} / {mean_cell(line, 3)}{'' if line.diverged else marks}"


def markdown(frame: pd.DataFrame, seeds: int) -> str:
    """As the paper lays it out, published / measured in each cell, and one answer for all below; once for each rate."""
    first = frame.iloc[0]
    about = (
        f"{ARTIFACT.caption} Each cell: published / **measured at {first['scale']} scale** on {first.model}, last epoch, mean over {seeds} {'seeds' if seeds > 1 else 'seed'} of "
        f"finetuning ± standard deviation. °: not above one answer for all examples by more than {LEARNED:g} standard deviations (of seeds and of validation "
        "examples, together), or one seed. "
        f"Learning rate as printed: {PRINTED_LR:g} for all; tuned alike: from a search of its own for each cell (\\*: chosen at an end of what was tried), "
        "by one other seed, on the validation examples that the table reports: a choice may follow chance."
    )
    parts = []
    for rate, part in frame.groupby("rate", sort=False):
        parts += [f"## Learning rate {rate}", _layout(part), fitness(part)]
    if TUNED not in set(frame.rate):
        parts.append(f"No rates tuned alike at {first['scale']} scale.")
    return markdown_page(f"{ARTIFACT.label}, {first['scale']} scale", about, *parts, sentences=origins(frame, "validation_examples"))


def _layout(frame: pd.DataFrame) -> str:
    tasks, kinds = list(dict.fromkeys(frame.task)), dict(zip(frame.task, frame.data, strict=True))
    heads, rows = [f"{task} ({kinds[task]})" for task in tasks], []
    for (method, model), part in frame.groupby(["finetuning", "pretraining"], sort=False):
        by_task = {line.task: line for line in part.itertuples()}
        rows.append([method, model, *(_number(by_task[t]) for t in tasks)])
    worth = dict(zip(frame.task, frame.without_learning, strict=True))
    rows.append(["one answer for all", "", *(f"{worth[task]:.3f}" for task in tasks)])
    return markdown_table(["finetuning", "pretraining", *heads], "ll" + "r" * len(heads), rows)


def fitness(frame: pd.DataFrame) -> str:
    """Whether anything was learned that can be compared."""
    return judged_orders(frame, "task", "one answer for all")


def build(context: Context) -> None:
    frame = table(context)
    write_text(context.results / "table4.md", markdown(frame, context.scale.settings.finetuning.seeds))
    rate = frame.rate.iloc[-1]
    seeds = spread_over(context.scale.settings.finetuning.seeds, "seeds of finetuning")
    note = f"Filled: measured, learning rate {rate}. Hollow: as printed, on GLUE. Dotted: one answer for all examples. {seeds}"
    save_figure(draw(frame[frame.rate == rate]), frame, context, ARTIFACT, note, fitness(frame[frame.rate == rate]))


ARTIFACT = Artifact(
    label="Table 4",
    caption="GLUE scores of AdamW- and POET-pretrained models after finetuning in full, by OFT and by POET.",
    outputs=("table4.csv", "table4.md", *figure_outputs("table4")),
    runs=bases, finetunings=lambda scale: [spec for specs in cells(scale).values() for spec in specs], build=build, claims=CLAIMS,
)
