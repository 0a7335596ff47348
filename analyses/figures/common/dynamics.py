"""Validation perplexity along training: what Figures 8 and 26 share.

The runs are those of Table 2. A curve is the mean over seeds of the evaluations during training. All points of a curve use
the scale's ``evaluation_rows``. Table 2 uses ``final_evaluation_rows``, so its numbers can differ from the last points of the curves.

The rule for crossings: a variant crosses AdamW at the first evaluation from which on its mean perplexity stays below AdamW's
of the same step. The crossing is the step of that evaluation as a share of training. It is 0 if the variant is below AdamW at
every evaluation ("below throughout"). A variant that does not end below AdamW has no crossing. The paper's figures show
crossings at 75 to 95% of training, for the variants that end below AdamW.
"""

import math

import numpy as np
import pandas as pd

from analyses.common.ablation import collapsed
from analyses.common.controls import fitness_sentence
from analyses.common.evidence import perplexities
from analyses.common.grid import BASELINE, grid
from analyses.common.paper_scale import model_label
from analyses.common.looks import look
from analyses.common.plotting import Axes, numbered_figure, plain_logarithmic, pyplot, save_figure, spread_note
from analyses.common.published import printed_perplexities, read_published
from analyses.figures.common.probed import line
from poet.methods import table_rows
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Claim
from suite.context import Context
from suite.scale import Scale

FINAL, CROSSING = "final perplexity", "crossing of AdamW"
#: The runs of a (model, row), by seed.
Cells = dict[tuple[str, str], list[RunSpec]]


def cells(scale: Scale, models: tuple[str, ...], prefixes: tuple[str, ...]) -> Cells:
    """The runs of Table 2 for the given models and for rows whose key starts with one of ``prefixes``."""
    return {(model, row): specs for (model, row), specs in grid(scale).items() if model in models and row.startswith(prefixes)}


def evaluations(context: Context, spec: RunSpec) -> pd.Series:
    """Validation perplexity of a run by step; the series ends where the run diverged."""
    evaluated = context.history(spec).dropna(subset="validation_perplexity").set_index("step").validation_perplexity
    return evaluated[np.isfinite(evaluated)]


def curves(context: Context, runs: Cells) -> dict[tuple[str, str], pd.DataFrame]:
    """{(model, variant): perplexities, a row for each step and a column for each seed}; NaN after a run diverged."""
    return {key: pd.DataFrame({spec.seed: evaluations(context, spec) for spec in specs}) for key, specs in runs.items()}


def overtakes_for_good(curve: pd.Series, baseline: pd.Series, steps: int) -> float:
    """Where ``curve`` crosses ``baseline`` by the module's rule, as a share of training; NaN if it does not end below.

    Both are perplexities by step. NaN (the run diverged) does not count as below."""
    above = ~(curve < baseline.reindex(curve.index)).to_numpy()
    if curve.empty or above[-1] or curve.index[-1] < steps:
        return math.nan
    return float(curve.index[np.flatnonzero(above)[-1] + 1] / steps) if above.any() else 0.0


def table(context: Context, runs: Cells, found: dict[tuple[str, str], pd.DataFrame], published_crossing: tuple[float, float]) -> pd.DataFrame:
    """A line on the final perplexity of every model and variant, and one on its crossing of AdamW; ``found`` has the :func:`curves`."""
    printed = printed_perplexities()
    lines = []
    for key, mine in runs.items():
        model, variant = key
        finals = perplexities(context, mine)
        about = {"model": model, "method": table_rows()[variant][1].label, "variant": variant}
        gone = collapsed(finals, mine[0].architecture.vocabulary)
        value = line(context, finals, "perplexity", printed.get(key, math.nan), **about, quantity=FINAL)
        lines.append({**value, "collapsed": gone, "crossed": ""})
        if variant == BASELINE:
            continue
        below = printed.get(key, math.inf) < printed[model, BASELINE]
        curve, baseline = (found[k].mean(axis=1, skipna=False) for k in (key, (model, BASELINE)))
        where = overtakes_for_good(curve, baseline, mine[0].steps)
        expected = published_crossing if below else (math.nan, math.nan)
        value = line(context, [where], "share of training", expected, **about, quantity=CROSSING)
        crossed = "no" if math.isnan(where) else "yes" if where else "below throughout"
        # The crossing is one number for all seeds, and NaN does not mean that a run diverged: count both here.
        lines.append({**value, "n": len(mine), "diverged": sum(map(math.isnan, finals)), "collapsed": gone, "crossed": crossed})
    return pd.DataFrame(lines)


def draw(axis: Axes, context: Context, model: str, found: dict[tuple[str, str], pd.DataFrame], steps: int) -> None:
    """The curves of a model, from the first point to the last, with a band of one standard deviation, and a cross where a run diverged.

    The axis of perplexities is logarithmic: the first points are far above the last ones."""
    first = steps
    for (name, variant), by_seed in found.items():
        if name != model or by_seed.empty:
            continue
        mean, spread = by_seed.mean(axis=1, skipna=False).dropna(), by_seed.std(axis=1, ddof=1)
        drawn, width = look(variant), 2 if variant == BASELINE else 1.4 if variant.startswith("poet") else 1
        label, every = table_rows()[variant][1].label, max(1, len(mean) // 8)
        axis.plot(mean.index, mean, **drawn, linewidth=width, markersize=4, markevery=every, label=label, clip_on=False)  # show whole markers at the ends
        if len(by_seed.columns) > 1:
            half = spread[mean.index]
            axis.fill_between(mean.index, mean - half, mean + half, color=drawn["color"], alpha=0.2, linewidth=0)
        if len(mean) and mean.index[-1] < steps:
            axis.plot(mean.index[-1], mean.iloc[-1], marker="x", color="black", markersize=11, markeredgewidth=2.5)
        first = min(first, by_seed.index[0])
    axis.set(title=model_label(context.scale, model), xlabel="step", yscale="log")
    if first < steps:
        axis.set_xlim(first, steps)
    plain_logarithmic(axis.yaxis)


def dynamics_artifact(
    number: int, caption: str, models: tuple[str, ...], prefixes: tuple[str, ...] = ("",), needed: tuple[str, ...] = (),
    claims: tuple[Claim, ...] = (),
) -> Artifact:
    """A figure of validation perplexity along training, two panels in a row, one for each model that the scale has.

    The scale must have the models in ``needed``. ``prefixes`` select the rows of Table 2, as in :func:`cells`."""

    def build(context: Context) -> None:
        chosen = cells(context.scale, models, prefixes)
        specs = [spec for by_seed in chosen.values() for spec in by_seed]
        printed = {p.quantity: (float(p.low), float(p.high)) for p in read_published("dynamics").itertuples()}
        found = curves(context, chosen)
        frame = table(context, chosen, found, printed[CROSSING])
        shown = list(dict.fromkeys(spec.model for spec in specs))
        across = min(2, len(shown))
        panels, columns = -(-len(shown) // across), 5 * across // 2
        figure, axes = pyplot().subplots(panels, across, figsize=(5 * across, 3.8 * panels + 0.8), squeeze=False)
        for axis, model in zip(axes.flat, shown, strict=False):
            draw(axis, context, model, found, next(spec.steps for spec in specs if spec.model == model))
        for axis in axes.flat[len(shown) :]:
            axis.axis("off")
        for row in axes:
            row[0].set_ylabel("validation perplexity")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        lines = -(-len(labels) // columns)
        figure.legend(handles, labels, loc="upper center", ncol=columns, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.28 * lines / figure.get_figheight()))
        parts = [
            rows_note(specs[0]), "Crosses: diverged." if frame.diverged.any() else "",
            spread_note(context, "Bands"), fitness_sentence(context, specs),
        ]
        save_figure(figure, frame, context, artifact, " ".join(filter(None, parts)), sentence(frame))

    artifact = numbered_figure(
        number, caption, runs=lambda scale: [spec for specs in cells(scale, models, prefixes).values() for spec in specs], build=build,
        models=needed, claims=claims,
    )
    return artifact


def rows_note(spec: RunSpec) -> str:
    """On how many validation rows the curves and the final perplexities are measured, for a caption."""
    curve, final = (n or "all" for n in (spec.evaluation_rows, spec.final_evaluation_rows))
    return f"Curves: {curve} validation rows; final perplexities: {final}."


def sentence(frame: pd.DataFrame) -> str:
    """A sentence for the caption: how many POET variants cross AdamW and when, split by where the paper has their end."""
    found = frame[(frame.quantity == CROSSING) & frame.variant.str.startswith("poet")]
    parts = []
    for name, part in (("below", found[found.published.notna()]), ("above", found[found.published.isna()])):
        crossed = part[part.crossed == "yes"].measured
        when = f" ({crossed.min():.0%} to {crossed.max():.0%} of training)" if len(crossed) else ""
        throughout = (part.crossed == "below throughout").sum()
        rest = f"{len(crossed)} cross it{when} and {throughout} are below it throughout"
        parts.append(f"of {len(part)} that the paper prints {name} it, {rest}")
    low, high = found.published_low.min(), found.published_high.max()
    return f"POET against AdamW: {'; '.join(parts)}. The paper's crossings: {low:.0%} to {high:.0%}."
