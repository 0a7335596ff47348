"""Table 2: validation perplexity and trainable parameters, nine methods by four model sizes.

The paper prints each row as better (lower perplexity) or worse than AdamW on the same model. ``direction`` says whether the mean
difference to AdamW, paired by seed, has the printed sign. ``difference_low`` and ``difference_high`` are its 95% t-interval (infinite
for one seed). A cell has no direction if one of its runs or of AdamW's diverged. Runs that end as a uniform guess are counted as
``collapsed``. The table judges nothing. The claims about it are in ``analyses/tables/table2/claims.py``, and are judged at scales that
pass the controls (:mod:`suite.fitness`).
"""

import math
import statistics
from typing import Any

import pandas as pd

from analyses.common.ablation import perplexity_columns
from analyses.common.controls import fitness_sentence, table_section
from analyses.common.evidence import with_p
from analyses.common.grid import BASELINE, grid, grid_runs
from analyses.common.layout import MARKS, crossed_table, markdown_page, measured_cell
from analyses.common.looks import look
from analyses.common.paper_scale import model_label
from analyses.common.plotting import Figure, bars, figure_outputs, plain_logarithmic, pyplot, save_figure, spread_note
from analyses.common.published import as_printed, printed_number, read_published
from analyses.tables.table2.claims import CLAIMS, agreement
from analyses.tables.table2.counts import KNOWN_COUNT_DIFFERENCES, paper_counts
from poet.methods import table_rows
from poet.training.errors import RunError
from suite.artifact import Artifact
from suite.claim import Evidence
from suite.context import Context
from suite.scale import Scale
from suite.statistics import paired_interval

#: Name of each family of rows, by how their keys begin.
FAMILIES = {"adamw": "AdamW", "galore": "GaLore", "lora": "LoRA", "poet-bs": "POET BS", "poet-fs": "POET FS"}


def beside_adamw(published_difference: float | None, values: list[float], baseline: list[float]) -> dict[str, Any]:
    """The columns that compare a cell's perplexities with AdamW's (``baseline``), both by seed; see the top of this file.

    ``published_difference`` is the printed perplexity minus AdamW's; None for a row that the paper does not have."""
    found = {"published_difference": published_difference, "measured_difference": statistics.fmean(values) - statistics.fmean(baseline)}
    low, high, direction = math.nan, math.nan, ""
    if values is not baseline and not any(map(math.isnan, (*values, *baseline))):
        mean, low, high = paired_interval([v - b for v, b in zip(values, baseline, strict=True)])
        if published_difference is not None:
            direction = "as published" if mean * published_difference > 0 else "opposite"
    return {**found, "difference_low": low, "difference_high": high, "direction": direction}


def table(context: Context) -> pd.DataFrame:
    """The tidy table: one line per model and row."""
    printed = {(p.model, p.variant): p for p in read_published("table2").itertuples()}
    counts = paper_counts()
    cells = grid(context.scale)
    records = {key: [context.record(spec) for spec in specs] for key, specs in cells.items()}
    data = {spec.name: r["data_sha256"] for key, specs in cells.items() for spec, r in zip(specs, records[key], strict=True)}
    one_of_each = {digest: name for name, digest in data.items()}
    if len(one_of_each) > 1:
        raise RunError(
            f"runs of Table 2 were trained on different data, such as {' and '.join(sorted(one_of_each.values()))}: remove those in results/runs/ "
            "whose data_sha256 (record.json) is not the sha256 of the prepared train split (data/*/meta.json), and train them again"
        )
    measured = {key: [r["validation_perplexity"] for r in found] for key, found in records.items()}
    lines = []
    for key, specs in cells.items():
        model, variant = key
        _, row = table_rows()[variant]
        values, paper, baseline = measured[key], printed.get(key), printed.get((model, BASELINE))
        reference = measured[model, BASELINE]
        published_difference = float(paper.perplexity) - float(baseline.perplexity) if paper else None
        trainable = as_printed(counts[key], paper.trainable if paper else "1.00B" if counts[key] >= 1e9 else "1.00M")
        first = records[key][0]
        lines.append({
            "model": model, "method": row.label, "published": float(paper.perplexity) if paper else math.nan,
            **perplexity_columns(context, specs), **beside_adamw(published_difference, values, reference),
            "published_trainable": paper.trainable if paper else "", "counted_trainable": trainable,
            "counted_trainable_exact": counts[key],
            "trainable_agrees": ("yes" if trainable == paper.trainable else "no") if paper else "",
            "run_trainable": first["trainable_parameters"], "run_parameters": first["total_parameters"],
            "run_tokens": first["tokens"], "learning_rates_from": context.scale.learning_rate_source(model, variant),
        })
    return pd.DataFrame(lines)


def apart_from_zero(line: Any) -> Any:
    """Whether the interval of the difference to AdamW excludes zero, for a line or, as a series, for every line of a table."""
    return (line.difference_low > 0) | (line.difference_high < 0)


def _cell(line: Any) -> str:
    published = "–" if math.isnan(line.published) else f"{line.published:.2f}"
    mark = MARKS.get(line.direction, "") if apart_from_zero(line) else ""
    return f"{published} / {measured_cell(line)} {mark}".rstrip()


def markdown(frame: pd.DataFrame, controls: str, sentences: list[str]) -> str:
    """The page: controls, the table (methods down, models across, published / measured in each cell), and sentences."""
    scale = frame.scale.iloc[0]
    about = (
        f"Each cell: published on C4 / **measured at {scale} scale on {frame.corpus.iloc[0]}**, mean over seeds, ± standard "
        "deviation where there are several. Against AdamW on the same model: + on the printed side, - on the opposite one, no mark where "
        "the 95% interval of the difference includes zero or there is none. Below it, trainable parameters counted at paper scale."
    )
    table = crossed_table(frame, ["method"], "model", lambda line: f"{_cell(line)}<br>({line.counted_trainable})")
    return markdown_page(f"{ARTIFACT.label}, {scale} scale", ARTIFACT.caption, controls, about, table, sentences=sentences)


def summary(frame: pd.DataFrame, agreements: dict[str, Evidence]) -> list[str]:
    """Sentences with the results of the table; ``agreements`` has the rank agreement with the paper by model."""
    compared = frame[frame.direction != ""]
    same = int((compared.direction == "as published").sum())
    apart = int(apart_from_zero(compared).sum())
    lines = [
        f"Against AdamW on the same model, {same} of {len(compared)} cells stand on the side that the paper prints. The intervals of "
        f"{apart} of {len(compared)} differences exclude zero. Whether that says anything of the paper is judged in claims.md."
    ]
    for model, found in agreements.items():
        lines.append(f"{model}: rank agreement with the paper ({found.note}), Kendall's tau {with_p(found)}.")
    foreign = [not source.endswith(f"({model})") for model, source in zip(frame.model, frame.learning_rates_from, strict=True)]
    for (model, source), part in frame[foreign].groupby(["model", "learning_rates_from"], sort=False):
        lines.append(f"{model}: with learning rates from {source}, not tuned on this model: {', '.join(part.method)}.")
    wrong = frame[frame.trainable_agrees == "no"]
    agree, printed = (frame.trainable_agrees == "yes").sum(), (frame.trainable_agrees != "").sum()
    lines.append(f"Trainable parameters at paper scale, counted from models: {agree} of {printed} equal the printed digits.")
    for r in wrong.itertuples():
        why = KNOWN_COUNT_DIFFERENCES.get((r.model, r.variant), "Not explained.")
        lines.append(f"{r.method} at {r.model}: counted {r.counted_trainable}, printed {r.published_trainable}. {why}")
    return lines


def draw(frame: pd.DataFrame, scale: Scale) -> Figure:
    """Perplexity against trainable parameters of the linear layers: measured with error bars, and published below it, or on the right if there is one model."""
    models = list(dict.fromkeys(frame.model))
    down, across = (2, len(models)) if len(models) > 1 else (1, 2)
    figure, axes = pyplot().subplots(down, across, figsize=(3.1 * across, 3.1 * down + 0.3 * (down == 1)), squeeze=False)
    axes = axes.reshape(2, len(models))  # by row of views and model
    further = frame[~frame.variant.isin(frame[frame.published.notna()].variant)].drop_duplicates("variant")
    families = FAMILIES | {r.variant: r.method for r in further.itertuples()}
    family_of = frame.variant.map(lambda v: v if v in families else next(f for f in FAMILIES if v.startswith(f)))
    for column, model in enumerate(models):
        part = frame.assign(family=family_of)[frame.model == model]
        published = part[part.published_trainable != ""]
        views = (
            (part.run_trainable, part.measured, part["std"], model_label(scale, model)),
            (published.published_trainable.map(printed_number), published.published, None, f"{model}, as printed"),
        )
        for row, (x, y, std, title) in enumerate(views):
            axis = axes[row, column]
            for family, label in families.items():
                chosen = part.family.reindex(x.index) == family
                if (part.family == family).any():
                    half = None if std is None else bars(std[chosen])
                    drawn = look(part.variant[part.family == family].iloc[-1])  # a family looks as its largest budget
                    axis.errorbar(x[chosen], y[chosen], half, **drawn, capsize=3, label=label)
            axis.set(xscale="log", yscale="log", title=title, xlabel="trainable, in the matrices")
            plain_logarithmic(axis.yaxis)
        axes[0, 0].set_ylabel("validation perplexity, measured")
        axes[1, 0].set_ylabel("validation perplexity, published")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    columns = min(len(labels), 3 * across)
    figure.legend(handles, labels, loc="lower center", ncol=columns, frameon=False)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight() * -(-len(labels) // columns), 1, 1))
    return figure


def build(context: Context) -> None:
    frame = table(context)
    agreements = {model: agreement(context, model) for model in dict.fromkeys(frame.model)}
    page = markdown(frame, table_section(context, grid_runs(context.scale)), summary(frame, agreements))
    places = ("Above", "Below") if frame.model.nunique() > 1 else ("Left", "Right")
    note = f"{places[0]}: measured. {places[1]}: as printed, on C4. {spread_note(context)} {fitness_sentence(context, grid_runs(context.scale))}"
    save_figure(draw(frame, context.scale), frame, context, ARTIFACT, note, page=page)


ARTIFACT = Artifact(
    label="Table 2",
    caption="Validation perplexity of POET and other pretraining methods on LLaMA models, and trainable parameters.",
    outputs=("table2.csv", "table2.md", *figure_outputs("table2")),
    runs=grid_runs, build=build, claims=CLAIMS,
)
