"""Figure 1: singular values of one weight matrix along training, AdamW against POET.

The matrix is the up projection of the middle block, a rule fixed before any run. The paper names neither the matrix nor the
block, but its figure can only show an up or a gate projection. Its values of 2.6 and 0.62 are near the ends of the spectrum of
a normalized Gaussian weight with 1376 neurons of 512 entries, sqrt(1376/512) + 1 = 2.64 and sqrt(1376/512) - 1 = 0.64. AdamW's
first value, 1.19 = 0.02 (sqrt(512) + sqrt(1376)), is the largest singular value of a standard weight of this shape.

Published values were read off the figure, to about two digits. They hold for the 60M model. At other widths the spectra
start at other values, so only their growth from start to end is compared.
"""

import numpy as np
import pandas as pd

from analyses.common.evidence import ALL, SERIES_ERROR, SIZE, TWO_DIGITS, as_read, over_seeds, share_in
from analyses.common.paper_scale import model_label
from analyses.common.plotting import numbered_figure, pyplot, save_figure
from analyses.common.published import printed_text, read_published
from analyses.figures.common.probed import LABELS, drawn_seed, layer
from analyses.figures.common.spectra import (
    POET, ROWS, about_runs, draw, growths, largest_change, largest_growth, measured, model, runs, steps_of, table,
)
from suite.claim import NEGATIVE, POSITIVE, Claim, Evidence
from suite.context import Context
from suite.scale import Scale

PROJECTION = "up_proj"


def middle(scale: Scale) -> int:
    """The block whose matrix is shown."""
    return scale.settings.models[model(scale)].layers // 2


def shown(context: Context, row: str) -> list[np.ndarray]:
    """Singular values of the figure's matrix by seed, (steps, r) each."""
    return [found[layer(middle(context.scale), PROJECTION)] for found in measured(context, row, "spectrum")]


def avoids(context: Context) -> Evidence:
    """By seed, the share of all matrices whose largest singular value grows less with POET than with AdamW."""
    more = [poet - adamw for poet, adamw in zip(growths(context, POET), growths(context, "adamw"), strict=True)]
    return share_in(NEGATIVE, more, runs(POET, "adamw")(context.scale), f"{len(more[0])} matrices")


CLAIMS = (
    Claim(
        key="figure1-poet-spectrum-stays", place="Figure 1's caption; Section 1", kind="invariance",
        says="POET's changes of the singular values are slight, almost negligible.",
        rule="Largest change of a singular value of the matrix at any measurement, relative to its start: at most 5%, which two "
        "digits may not show.",
        unit="relative", region=TWO_DIGITS,
        measure=lambda context: over_seeds([largest_change(s) for s in shown(context, POET)], runs(POET)(context.scale), bounds=SIZE),
        paper_only=SERIES_ERROR,
    ),
    Claim(
        key="figure1-adamw-largest-grows", place="Figure 1", kind="trend",
        says="With AdamW the largest singular value grows along training.",
        rule="log(end / start) of the matrix's largest singular value: above 0.",
        unit="nats", region=POSITIVE,
        measure=lambda context: over_seeds([largest_growth(s) for s in shown(context, "adamw")], runs("adamw")(context.scale)),
    ),
    Claim(
        key="figure1-adamw-largest-end", place="Figure 1", kind="number",
        says="With AdamW the largest singular value ends at about 11.",
        rule="The matrix's largest singular value at the end: what was read off the figure, half a unit either side.",
        unit="singular value", region=as_read(printed_text("figure1", "value", row="adamw", when="end")),
        measure=lambda context: over_seeds([s[-1, 0] for s in shown(context, "adamw")], runs("adamw")(context.scale)),
        paper_only="the value belongs to the paper's widths and to 50,000 steps",
    ),
    Claim(
        key="figure1-poet-avoids-large", place="Section 1; Figures 1 and 17 to 22", kind="ordering",
        says="POET's largest singular values grow less than AdamW's (the paper: POET avoids undesirably large ones).",
        rule="Share of all weight matrices whose largest singular value grows less, relative to its start, with POET than with "
        "AdamW: all of them. (Growth, because at other widths the two begin elsewhere.)",
        unit="share of matrices", region=ALL, measure=avoids,
    ),
)


def build(context: Context) -> None:
    block = middle(context.scale)
    printed = {(p.row, p.quantity, p.when): float(p.value) for p in read_published("figure1").itertuples()}
    frames = {row: table(context, row, [(block, PROJECTION)], printed) for row in ("adamw", POET)}
    figure, axes = pyplot().subplots(1, 2, figsize=(8, 3.6), sharey=True)
    for axis, row in zip(axes, frames, strict=True):
        draw(axis, steps_of(context), shown(context, row)[0])
        axis.set(title=f"{ROWS[row]}, {model_label(context.scale, model(context.scale))}", xlabel="step")
    axes[0].set(ylabel="singular value", ylim=(0, None))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", ncol=3, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.28 / figure.get_figheight()))
    matrix = f"{LABELS[PROJECTION]} projection of block {block}"
    note = f"Matrix: {matrix}. Thin lines: values in between. {about_runs(context)} {drawn_seed(context)}"
    save_figure(figure, pd.concat(frames.values()), context, ARTIFACT, note)


ARTIFACT = numbered_figure(
    1, "Training dynamics of the singular values of one weight matrix, trained directly and with POET.",
    runs=runs("adamw", POET), build=build, claims=CLAIMS,
)
