"""Table 12: BART finetuned on summaries by LoRA, by OFT, in full and by POET.

The larger scales finetune BART-large. The other ones finetune a small BART, which the pipeline pretrains by text infilling. The paper states
no learning rate, decoding or training length. Rate, weight decay and decoding are those of BART's authors; ``summarization`` of the scale's file has the rest.

The baseline of each score is the lead: the score of the document's first sentences. A cell has learned if its mean over two seeds or more is above the lead by
more than two standard deviations (:mod:`analyses.common.learned`). The claim compares two cells only if one of them has learned.
"""

import itertools
import math
import statistics
from typing import Any

import pandas as pd

from analyses.common.bart import parameter_counts
from analyses.common.layout import crossed_table, markdown_page
from analyses.common.learned import LEARNED, all_lower, judged_orders, learned, origins, score_cell, score_columns, stand_ins
from analyses.common.plotting import MARKERS, Figure, bars, figure_outputs, pyplot, save_figure, spread_over
from analyses.common.published import as_printed, read_published
from poet.finetuning.rouge import METRICS
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from suite.artifact import Artifact
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context
from suite.scale import Scale
from suite.summarization import BART_LR, METHODS_OF_TABLE12, TASKS_OF_TABLE12, pretraining, summarization

PRINTED = read_published("table12").set_index("method")
#: Printed name of a method to its key; both lists have the paper's order.
METHODS = dict(zip(PRINTED.index, METHODS_OF_TABLE12, strict=True))
#: Printed name of a data set to its key, in the paper's order.
NAMES = {TASKS[key].label: key for key in sorted(TASKS_OF_TABLE12, reverse=True)}
#: Printed name of each metric of ``poet.finetuning.rouge``; the paper has no column for the last one.
LABELS = dict(zip(METRICS, ("ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-Lsum"), strict=True))
#: Printed name of method and data set.
Cell = tuple[str, str]
#: Largest possible difference of two scores, in percent.
GREATEST = 100.0
POET = "POET (FS, b=1/2)"
#: The metrics that the paper names.
NAMED = ("rouge1", "rouge2", "rougeL")
#: Horizontal distance of a measured and of a printed number from the middle of their method.
BESIDE = 0.12


def cells(scale: Scale) -> dict[Cell, list[FinetuningSpec]]:
    """The runs of each cell, by seed."""
    seeds = range(scale.settings.summarization.seeds)
    return {(label, name): [summarization(scale, task, method, seed) for seed in seeds] for label, method in METHODS.items() for name, task in NAMES.items()}


def table(context: Context) -> pd.DataFrame:
    """One line for each method, data set and metric."""
    lines, counts = [], parameter_counts()
    for (method, task), specs in cells(context.scale).items():
        records = [context.record(spec) for spec in specs]
        first, printed = records[0], PRINTED.loc[method]
        same = sum(len(set(context.summaries(spec))) == 1 for spec in specs)
        for metric, label in LABELS.items():
            values = [record["rouge"][metric] for record in records]
            lead = first["lead"][metric]
            lines.append({
                "method": method, "task": task, "metric": label, "published": float(printed.get(f"{task} {label}", math.nan)),
                **score_columns(values), "unit": "F-measure in percent", "lead": lead, "validation_loss": statistics.fmean(record["metric"] for record in records),
                "learned": "yes" if learned(values, lead, "rouge", first["examples"]["validation"]) else "no", "lead_sentences": first["lead_sentences"], "trainable": first["trainable_parameters"],
                "bart_large_trainable": as_printed(counts[method], printed.trainable), "published_trainable": printed.trainable,
                "learning_rate": specs[0].lr, "train_examples": first["examples"]["train"], "summaries": first["examples"]["validation"], "runs_of_one_text": same,
                "data": first["origin"]["kind"], "origin": first["origin"]["sentence"], "scale": context.scale.name, "base": specs[0].base,
            })  # fmt: skip
    return pd.DataFrame(lines)


def _number(line: Any) -> str:
    if line.diverged:
        return score_cell(line, 2)
    printed = "–" if math.isnan(line.published) else f"{line.published:.2f}"
    return f"{printed} / {score_cell(line, 2)}{'' if line.learned == 'yes' else ' °'}"


def _documents(context: Context) -> str:
    """Which documents are measured, and how much of them the model reads."""
    settings = context.scale.settings.summarization
    which = "held out by this suite" if settings.source == "offline" else "of the validation split"
    return (
        f"Documents are {which}; the paper does not say of which split its scores are. They are cut to {settings.sequence_length} tokens. These, and the lengths that "
        "a summary may have, are counted by the model's own tokenizer."
    )


def markdown(frame: pd.DataFrame, context: Context) -> str:
    """The page: the table in the paper's layout with published / measured in each cell and a line for the lead, then notes."""
    first, seeds = frame.iloc[0], context.scale.settings.summarization.seeds
    about = (
        f"{ARTIFACT.caption} Each cell: published / **measured at {first.scale} scale** on {_model(context)}, mean over {seeds} {'seeds' if seeds > 1 else 'seed'} of finetuning ± "
        f"standard deviation / median. °: not above the lead by more than {LEARNED:g} standard deviations (of seeds, and the largest that the summaries can have), or one seed. The learning rate is {BART_LR:g} for "
        "all, that of BART's authors, since the paper states none for this table; no rate is tuned for it. One rate for all is a confound: LoRA and OFT train other "
        f"parameters than full finetuning, and may need another rate. {_documents(context)} Every run starts from one BART."
    )
    parameters = (
        "Trainable parameters: printed / counted on BART-large / **on the model here**. The count of POET on BART-large is that of R and P, as printed; on the "
        "model here it has the embeddings, norms and biases, which POET trains too."
    )
    return markdown_page(
        f"{ARTIFACT.label}, {first.scale} scale", about, _layout(frame), _losses(frame), _one_text(frame), parameters, fitness(frame), _apart(frame), sentences=origins(frame, "summaries")
    )  # fmt: skip


def _model(context: Context) -> str:
    """The pretrained model in words; for a small BART with its pretraining loss."""
    for spec in pretraining(context.scale):
        a, record = spec.architecture, context.record(spec)
        return (
            f"a small BART (width {a.hidden_size}, {a.layers} + {a.layers} layers), pretrained by text infilling for {record['steps']:,} steps to "
            f"a loss of {record['metric']:.2f} nats a token"
        )
    return f"a pretrained BART ({context.scale.settings.summarization.base})"


def _layout(frame: pd.DataFrame) -> str:
    trainable = [f"{line.published_trainable} / {line.bart_large_trainable} / **{line.trainable:,}**" for line in frame.itertuples()]
    frame = frame.assign(trainable=trainable, heading=frame.task + " (" + frame.data + ") " + frame.metric)
    sentences = dict(zip(frame.task, frame.lead_sentences, strict=True))
    lead = f"lead ({', '.join(f'{task}: {n}' for task, n in sentences.items())} sentences)"
    leads = [lead, "", *(f"{value:.2f}" for value in frame.drop_duplicates("heading").lead)]
    return crossed_table(frame, ["method", "trainable"], "heading", _number, [leads])


def fitness(frame: pd.DataFrame) -> str:
    """A sentence on the scores for which orders are compared."""
    return judged_orders(frame.assign(score=frame.task + " " + frame.metric, at_grid_end=""), "score", "the lead")


def _losses(frame: pd.DataFrame) -> str:
    """A sentence with the validation loss of each method. The loss is of the references, so it does not depend on decoding."""
    cells = frame.drop_duplicates(["method", "task"])
    by_task = (
        f"{task} ({part.data.iloc[0]}): " + ", ".join(f"{line.method} {'diverged' if line.diverged else f'{line.validation_loss:.3f}'}" for line in part.itertuples())
        for task, part in cells.groupby("task", sort=False)
    )
    return f"Validation loss after the last epoch, in nats a token of the references, mean over seeds. {'. '.join(by_task)}."


def _one_text(frame: pd.DataFrame) -> str:
    """A sentence with the number of runs that write the same summary for every document: their score measures one text."""
    cells = frame.drop_duplicates(["method", "task"])
    runs = int((cells.n + cells.diverged).sum())
    return f"In {cells.runs_of_one_text.sum()} of {runs} runs the model writes one and the same text for every document."


def _apart(frame: pd.DataFrame) -> str:
    """How far ROUGE-Lsum is above ROUGE-L on CNN/DailyMail: for the lead and, if some method has learned, for the written summaries."""
    part = frame[frame.task == "CNN/DailyMail"]
    sources = {"lead": "the lead"} | ({"measured": "those that were written, in the mean over methods"} if (part.learned == "yes").any() else {})
    printed = f"The printed column of ROUGE-L has {', '.join(PRINTED['CNN/DailyMail ROUGE-L'])} (erratum rouge-l-columns)."
    part = part.pivot(index="method", columns="metric", values=list(sources))
    if part.isna().any(axis=None) or not (part.xs("ROUGE-L", axis=1, level="metric") > 0).all(axis=None):
        return f"How far ROUGE-Lsum is above ROUGE-L is not known: a run diverged, or shares no word with its references. {printed}"

    def above(what: str) -> str:
        lsum, longest = part[what]["ROUGE-Lsum"], part[what]["ROUGE-L"]
        return f"{statistics.fmean(lsum - longest):.2f} above ROUGE-L ({statistics.fmean(lsum / longest):.2f} times as much) for {sources[what]}"

    return f"On CNN/DailyMail, ROUGE-Lsum of the same summaries is {', and '.join(map(above, sources))}. {printed}"


def draw(frame: pd.DataFrame) -> Figure:
    """Scores by method: measured with error bars, printed beside them, and the lead baseline."""
    tasks, metrics, methods = (list(dict.fromkeys(frame[column])) for column in ("task", "metric", "method"))
    figure, axes = pyplot().subplots(len(tasks), len(metrics), figsize=(12.4, 6.0), squeeze=False)
    for row, task in zip(axes, tasks, strict=True):
        for axis, metric in zip(row, metrics, strict=True):
            part = frame[(frame.task == task) & (frame.metric == metric)].set_index("method").loc[methods]
            places = range(len(methods))
            axis.errorbar([p - BESIDE for p in places], part.measured, bars(part["std"]), marker=MARKERS[0], linestyle="", capsize=3, label="measured")
            if part.published.notna().any():
                axis.plot([p + BESIDE for p in places], part.published, marker=MARKERS[1], linestyle="", markerfacecolor="none", label="printed")
            axis.axhline(part.lead.iloc[0], color="0.3", linestyle=":", label="lead of the document")
            short = [method.partition(" (")[0] for method in methods]
            axis.set(title=f"{task} ({part.data.iloc[0]})\n{metric}", xticks=list(places), xticklabels=short, xlim=(-0.5, len(methods) - 0.5))
        row[0].set_ylabel("ROUGE")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure


def _others_minus_poet(context: Context) -> Evidence:
    """The largest mean of (another method's score minus POET's), over pairs of cells of which at least one has learned."""
    frame, specs, comparisons = context.table("table12").set_index(["method", "task", "metric"]), cells(context.scale), []
    data = stand_ins({task: frame.loc[(POET, task, LABELS[NAMED[0]]), "data"] for task in NAMES})
    for other, task, metric in itertools.product((name for name in METHODS if name != POET), NAMES, NAMED):
        ours, theirs = ([context.record(spec)["rouge"][metric] for spec in specs[name, task]] for name in (POET, other))
        able = "yes" in {frame.loc[(name, task, LABELS[metric]), "learned"] for name in (POET, other)}
        comparisons.append([b - a for a, b in zip(ours, theirs, strict=True)] if able else None)
    return all_lower(comparisons, [spec for by_seed in specs.values() for spec in by_seed], GREATEST, "neither method has learned", data)


CLAIMS = (
    Claim(
        key="table12-poet-best", place="Appendix L, Table 12", kind="finetuning",
        says="POET outperforms full finetuning and the parameter-efficient methods on summaries, by ROUGE-1, -2 and -L on both data sets.",
        rule="ROUGE of each other method minus that of POET, paired by seed of finetuning, wherever one of the two has learned (its mean over two seeds "
        f"or more is above the lead by more than {LEARNED:g} standard deviations, of seeds and of summaries together): the largest mean difference is below zero. While a comparison is left out, the claim can be refuted and not confirmed.",
        unit="ROUGE", region=NEGATIVE, measure=_others_minus_poet,
    ),
)


def build(context: Context) -> None:
    frame = table(context)
    seeds = spread_over(context.scale.settings.summarization.seeds, "seeds of finetuning")
    data = stand_ins(dict(zip(frame.task, frame.data, strict=True)))
    note = f"Filled: measured. Hollow: as printed, on BART-large. Dotted: the document's first sentences. {seeds} {data}".rstrip()
    save_figure(draw(frame), frame, context, ARTIFACT, note, fitness(frame), markdown(frame, context))


ARTIFACT = Artifact(
    label="Table 12",
    caption="ROUGE of summaries by BART after finetuning by LoRA, by OFT, in full and by POET.",
    outputs=("table12.csv", "table12.md", *figure_outputs("table12")),
    finetunings=lambda scale: [*pretraining(scale), *(spec for specs in cells(scale).values() for spec in specs)], build=build, claims=CLAIMS,
)
