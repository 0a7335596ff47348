"""Table 4: AdamW- and POET-pretrained models, finetuned on GLUE in full, by OFT and by POET.

The pretrained models are runs of Table 2 that keep their weights. The paper does not name the model's size, the variant of POET, the
batch, the sequence length or the schedule; our choices are under ``finetuning`` in the scale's file. Each number is the score after
the last epoch on GLUE's validation set (MNLI: matched), or on its stand-in.

There are two learning rates: "as printed", 2e-5 for everything, and "tuned alike", from a search for each cell (``suite.tuning.finetuning``;
``make results/<scale>/finetuning_rates.csv`` and ``make record``). A scale without these searches has the first one alone.

The baseline of each task is the score of one answer for all examples. A cell has learned if its mean over two seeds or more is above the baseline by more
than two standard deviations (:mod:`analyses.common.learned`). Claims compare two cells only if one of them has learned.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from analyses.common.evidence import over_seeds
from analyses.common.layout import crossed_table, markdown_page
from analyses.common.learned import LEARNED, all_lower, judged_orders, learned, origins, score_cell, score_columns, stand_ins
from analyses.common.plotting import MARKERS, Figure, bars, figure_outputs, pyplot, save_figure, spread_over
from analyses.common.published import read_published
from poet.finetuning.methods import FINETUNERS
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context
from suite.finetuning import METHODS_OF_TABLE4, PRINTED_LR, bases, finetuning, tuned_rates
from suite.judging import NOTHING
from suite.scale import Scale

#: Printed name of a finetuning method to its key.
METHODS = {FINETUNERS[key].label: key for key in METHODS_OF_TABLE4}
PRINTED_RATE, TUNED = "as printed", "tuned alike"
PRINTED = read_published("table4").set_index(["finetuning", "pretraining"]).astype(float)
#: Key of a task by its printed name.
NAMES = {task.label: key for key, task in TASKS.items() if task.label in PRINTED.columns}
#: (rate, finetuning, pretraining, task).
Cell = tuple[str, str, str, str]
#: Why two cells are not compared.
LEFT_OUT = "nothing was learned, or a rate lies at an end of what was tried"
#: Largest possible difference of two scores: correlations lie between -1 and 1.
GREATEST = 2.0
#: Horizontal distances: between the two pretrained models of a finetuning method, and between a measured and a printed number.
APART, BESIDE = 0.24, 0.11


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
        unit = TASKS[NAMES[task]].metric
        nothing = statistics.fmean(record["without_learning"] for record in records)
        inside = rate == PRINTED_RATE or tuned[models[model].variant, NAMES[task], METHODS[method]][1]
        lines.append({
            "rate": rate, "finetuning": method, "pretraining": model, "task": task, "published": PRINTED.loc[(method, model), task],
            **score_columns(values), "unit": unit, "without_learning": nothing,
            "learned": "yes" if learned(values, nothing, unit, first["examples"]["validation"]) else "no", "learning_rate": specs[0].lr, "at_grid_end": "" if inside else "lr",
            "trainable": first["trainable_parameters"], "train_examples": first["examples"]["train"],
            "validation_examples": first["examples"]["validation"], "data": first["origin"]["kind"], "origin": first["origin"]["sentence"],
            "scale": context.scale.name, "model": specs[0].model, "base": specs[0].base,
        })
    return pd.DataFrame(lines)


def _number(line: Any) -> str:
    marks = ("" if line.learned == "yes" else " °") + (" \\*" if line.at_grid_end else "")
    return f"{line.published:.3f} / {score_cell(line, 3)}{'' if line.diverged else marks}"


def markdown(frame: pd.DataFrame, seeds: int) -> str:
    """The page: for each rate the table in the paper's layout, with published / measured in each cell and a line for one answer for all."""
    first = frame.iloc[0]
    about = (
        f"{ARTIFACT.caption} Each cell: published / **measured at {first['scale']} scale** on {first.model}, last epoch, mean over {seeds} {'seeds' if seeds > 1 else 'seed'} of "
        f"finetuning ± standard deviation / median. °: not above one answer for all examples by more than {LEARNED:g} standard deviations (of seeds and of validation "
        "examples, together), or one seed. "
        f"Learning rate as printed: {PRINTED_LR:g} for all; tuned alike: from a search of its own for each cell (\\*: chosen at an end of what was tried), "
        "by one other seed, on training examples that the search held out: a choice may follow chance."
    )
    counts = ", ".join(f"{method} {count:,}" for method, count in frame.drop_duplicates("finetuning").set_index("finetuning").trainable.items())
    trained = f"Trained parameters, without the head: {counts}. Full finetuning and POET train the embeddings; OFT leaves them as they are."
    parts = []
    for rate, part in frame.groupby("rate", sort=False):
        parts += [f"## Learning rate {rate}", _layout(part), fitness(part)]
    if TUNED not in set(frame.rate):
        parts.append(f"No rates tuned alike at {first['scale']} scale.")
    return markdown_page(f"{ARTIFACT.label}, {first['scale']} scale", about, trained, *parts, sentences=origins(frame, "validation_examples"))


def _layout(frame: pd.DataFrame) -> str:
    frame = frame.assign(heading=frame.task + " (" + frame.data + ")")
    worth = frame.drop_duplicates("task").without_learning
    nothing = ["one answer for all", "", *(f"{value:.3f}" for value in worth)]
    return crossed_table(frame, ["finetuning", "pretraining"], "heading", _number, [nothing])


def fitness(frame: pd.DataFrame) -> str:
    """A sentence on the tasks for which orders are compared."""
    return judged_orders(frame, "task", "one answer for all")


def draw(frame: pd.DataFrame) -> Figure:
    """Scores by finetuning method and pretrained model at one rate: measured with error bars, and printed beside them."""
    tasks, methods, models = (list(dict.fromkeys(frame[column])) for column in ("task", "finetuning", "pretraining"))
    figure, axes = pyplot().subplots(2, 4, figsize=(12.4, 6.2))
    for axis, task in zip(axes.flat, tasks, strict=True):
        part = frame[frame.task == task]
        for number, model in enumerate(models):
            own = part[part.pretraining == model].set_index("finetuning").loc[methods]
            place = np.arange(len(methods)) + (number - 0.5) * APART
            color = f"C{number}"
            axis.errorbar(place - BESIDE / 2, own.measured, bars(own["std"]), marker=MARKERS[number], linestyle="", capsize=3, color=color, label=f"{model}, measured")
            axis.plot(place + BESIDE / 2, own.published, marker=MARKERS[number], linestyle="", color=color, markerfacecolor="none", label=f"{model}, printed")
        axis.axhline(part.without_learning.iloc[0], color="0.3", linestyle=":", label="one answer for all")
        axis.set(title=f"{task} ({part.data.iloc[0]})", xticks=range(len(methods)), xticklabels=methods, xlim=(-0.5, len(methods) - 0.5))
    for axis in axes[:, 0]:
        axis.set_ylabel("score")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure


#: OFT is "generally" worse if it has the lower metric in more than this share of the comparisons.
HALF = 0.5
#: (finetuning, pretraining, task) of two cells that are compared.
Pair = tuple[tuple[str, str, str], tuple[str, str, str]]
#: For each pair the second minus the first metric by seed, or None if it is not compared.
Differences = Sequence[list[float] | None]


def pretrained_by_poet(differences: Differences, runs: tuple[FinetuningSpec, ...], data: str) -> Evidence:
    """The largest mean difference: below zero if every first cell is better. ``data`` is the sentence of :func:`stand_ins`.

    Each pair compares the two pretrained models. There is one run of each, so the mean over finetuning seeds counts as one number.
    """
    means = [None if own is None else [statistics.fmean(own)] for own in differences]
    return all_lower(means, runs, GREATEST, LEFT_OUT, data)


def oft_lower(differences: Differences, runs: tuple[FinetuningSpec, ...], data: str) -> Evidence:
    """The share of pairs in which the second cell, OFT, has the lower metric, by seed; NaN for a seed in which a run diverged.

    Pairs that are not compared count against the side of one half that the others are on. If that changes the side, nothing is decided.
    """
    compared = [own for own in differences if own is not None]
    left = len(differences) - len(compared)
    diverged = "a run diverged" if any(map(math.isnan, itertools.chain(*compared))) else ""
    note = "; ".join(filter(None, (diverged, f"{left} of {len(differences)} comparisons left out: {LEFT_OUT}" if left else "", data.rstrip("."))))
    if not compared:
        return replace(NOTHING, runs=runs, note=note)
    seeds = list(zip(*compared, strict=True))
    lower = [math.nan if any(map(math.isnan, own)) else sum((difference < 0) + 0.5 * (difference == 0) for difference in own) for own in seeds]
    least, most = (over_seeds([(count + more) / len(differences) for count in lower], runs, note, (0.0, 1.0)) for more in (0, left))
    if least.effect > HALF or not left:
        return least
    if most.effect <= HALF:
        return most
    found = over_seeds([count / len(compared) for count in lower], runs, note, (0.0, 1.0))
    return replace(found, low=least.low, high=most.high, p=1.0)


def _measure(evidence: Callable[..., Evidence], rate: str, pairs: Sequence[Pair]) -> Callable[[Context], Evidence]:
    """A claim's measure, from the evidence of pairs of cells at a rate.

    Two cells are compared if one of them has learned, and both rates lie inside what was tried.
    """

    def measured(context: Context) -> Evidence:
        frame, specs, differences = context.table("table4"), cells(context.scale), []
        if rate not in set(frame.rate):
            return replace(NOTHING, note="no rates tuned alike")
        frame = frame[frame.rate == rate].set_index(["finetuning", "pretraining", "task"])
        for pair in pairs:
            ours, theirs = ([context.record(spec)["metric"] for spec in specs[rate, *cell]] for cell in pair)
            able = "yes" in set(frame.loc[list(pair), "learned"]) and frame.loc[list(pair), "at_grid_end"].isna().all()
            differences.append([b - a for a, b in zip(ours, theirs, strict=True)] if able else None)
        runs = tuple(dict.fromkeys(spec for pair in pairs for cell in pair for spec in specs[rate, *cell]))
        return evidence(differences, runs, stand_ins({cell[2]: frame.loc[cell, "data"] for pair in pairs for cell in pair}))

    return measured


def _claims(rate: str, suffix: str) -> tuple[Claim, Claim]:
    """The two claims at a rate. Two cells are compared only if one of them has learned and both rates lie inside what was tried."""
    tasks, models, where = list(NAMES), ("AdamW", "POET"), f"learning rate {rate}"
    pretrained = [((method, "POET", task), (method, "AdamW", task)) for method, task in itertools.product(METHODS, tasks)]
    others = [((method, model, task), ("OFT", model, task)) for method, model, task in itertools.product(("Full FT", "POET"), models, tasks)]
    return (
        Claim(
            key=f"table4-poet-pretrained-better{suffix}", place="Section 5.2, Table 4", kind="finetuning",
            says=f"The POET-pretrained model is better than the AdamW-pretrained one on all tasks and by all finetuning methods ({where}).",
            rule="Metric of the AdamW-pretrained model minus that of the POET-pretrained one, in the mean over seeds of finetuning, in each cell that "
            "one of the two has learned, by rates inside what was tried: the largest difference is below zero. (Of the printed pairs it is in all but one.) One run of each is finetuned, so n is 1 and the claim stays undecided.",
            unit="metric", region=NEGATIVE, measure=_measure(pretrained_by_poet, rate, pretrained),
        ),
        Claim(
            key=f"table4-oft-worse{suffix}", place="Section 5.2, Table 4", kind="finetuning",
            says=f"OFT generally performs worse than full finetuning and POET ({where}).",
            rule="Share of the comparisons of OFT with full finetuning and with POET (each task, each pretrained model) in which OFT has the lower metric, by "
            "seed: more than half. A tie counts one half. A comparison in which neither has learned, or with a rate at an end of what was tried, is left out, and counts against the side of one half that the others are on. If a run diverged, the claim is undecided.",
            unit="share of comparisons", region=(math.nextafter(HALF, 1), 1.0), measure=_measure(oft_lower, rate, others),
        ),
    )


CLAIMS = (*_claims(PRINTED_RATE, ""), *_claims(TUNED, "-tuned"))


def build(context: Context) -> None:
    frame = table(context)
    rate = frame.rate.iloc[-1]
    seeds = spread_over(context.scale.settings.finetuning.seeds, "seeds of finetuning")
    data = stand_ins(dict(zip(frame.task, frame.data, strict=True)))
    note = f"Filled: measured, learning rate {rate}. Hollow: as printed, on GLUE. Dotted: one answer for all examples. {seeds} {data}".rstrip()
    page = markdown(frame, context.scale.settings.finetuning.seeds)
    save_figure(draw(frame[frame.rate == rate]), frame, context, ARTIFACT, note, fitness(frame[frame.rate == rate]), page)


ARTIFACT = Artifact(
    label="Table 4",
    caption="GLUE scores of AdamW- and POET-pretrained models after finetuning in full, by OFT and by POET.",
    outputs=("table4.csv", "table4.md", *figure_outputs("table4")),
    runs=bases, finetunings=lambda scale: [spec for specs in cells(scale).values() for spec in specs], build=build, claims=CLAIMS,
)
