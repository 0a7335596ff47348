"""Figure 1: singular values of one weight matrix along training, AdamW against POET.

The rule for the matrix, fixed before any run: the up projection of the middle block. The paper names neither its matrix nor
its block, but what its figure shows can only be an up or a gate projection: 2.6 and 0.62 are the ends of a normalized
Gaussian weight with 1376 neurons of 512 entries, sqrt(1376/512) + 1 = 2.64 and sqrt(1376/512) - 1 = 0.64, and 1.19 =
0.02 (sqrt(512) + sqrt(1376)) is where a standard one begins.

Published values were read off the figure, to about two digits. They belong to the 60M model: at other widths the spectra
begin elsewhere, and what compares is the growth from start to end.
"""

from __future__ import annotations

import pandas as pd

from analyses.artifact import Artifact, Context
from analyses.figures import plt, save_figure
from analyses.probed import LABELS, layer
from analyses.published import read_published
from analyses.spectra import POET, ROWS, about_runs, draw, measured, model, runs, table
from analyses.tables import write_csv

PROJECTION = "up_proj"


def build(context: Context) -> None:
    block = context.scale.settings["models"][model(context.scale)]["layers"] // 2
    printed = {(p.row, p.quantity, p.when): float(p.value) for p in read_published("figure1").itertuples()}
    frames = {row: table(context, row, [(block, PROJECTION)], printed) for row in ("adamw", POET)}
    write_csv(pd.concat(frames.values()), context.results / "figure1.csv")
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True)
    growth = []
    for axis, (row, frame) in zip(axes, frames.items(), strict=True):
        steps, seeds = measured(context, row, "spectrum")
        draw(axis, steps, seeds[0][layer(block, PROJECTION)])
        axis.set(title=ROWS[row], xlabel="step")
        largest = frame[frame.quantity == "largest"].measured.to_numpy()
        change = frame[frame.quantity == "largest relative change"].measured.item()
        grown = f"largest {largest[0]:.3g} to {largest[-1]:.3g}, largest change of a value relative to its start {change:.3g}"
        growth.append(f"{ROWS[row]}: {grown}.")
    axes[0].set(ylabel="singular value", ylim=(0, None))
    axes[0].legend(title="thin lines: between", loc="upper left")
    figure.tight_layout()
    matrix = f"{LABELS[PROJECTION]} projection of block {block}"
    save_figure(figure, context, ARTIFACT, f"Matrix: {matrix}. {' '.join(growth)} {about_runs(context)}")


ARTIFACT = Artifact(
    label="Figure 1",
    caption="Training dynamics of the singular values of one weight matrix, trained directly and with POET.",
    outputs=("figure1.csv", "figures/figure1.png", "figures/figure1.pdf"),
    runs=runs("adamw", POET),
    build=build,
)
