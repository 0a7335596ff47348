"""Figure 6: singular-value entropy along training with AdamW, Muon and POET, by matrix type, averaged over blocks.

The entropy is that of Section 4 with the minus sign that the paper's formula lacks, normalized by log n: 1 means that all
singular values are equal. Runs and steps: ``analyses.spectra``. Published values were read off the figure, at its start,
at its first measurement (5,000 steps) and at its end. Where the widths are not the paper's, the starts differ from it: a
fresh Gaussian weight with sides r <= s has an entropy of about 1 - r/(2 s ln r), 0.920 at 512 x 512 and 0.970 at 512 x 1376.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from analyses.artifact import Artifact, Context
from analyses.figures import plt, save_figure
from analyses.probed import LABELS, layer, line
from analyses.published import read_published
from analyses.spectra import POET, ROWS, STYLES, about_runs, measured, model, runs
from analyses.tables import write_csv
from poet.diagnostics import singular_value_entropy


def table(context: Context) -> pd.DataFrame:
    """One line per method, matrix type and step."""
    printed = {(p.row, p.matrix, p.when): float(p.value) for p in read_published("figure6").itertuples()}
    name, lines = model(context.scale), []
    depth = context.scale.settings["models"][name]["layers"]
    for row, label in ROWS.items():
        steps, seeds = measured(context, row, "spectrum")
        when = {0: "start", 1: "first", len(steps) - 1: "end"}
        for projection, matrix in LABELS.items():
            spectra = [np.stack([found[layer(block, projection)] for block in range(depth)]) for found in seeds]
            entropy = [singular_value_entropy(torch.from_numpy(s)).mean(0) for s in spectra]  # (steps,) each
            for i, step in enumerate(steps):
                published = printed.get((row, matrix, when.get(i)), np.nan)
                values = [e[i] for e in entropy]
                about = {"model": name, "method": label, "matrix": matrix, "step": step}
                lines.append(line(context, values, "entropy", published, **about))
    return pd.DataFrame(lines)


def build(context: Context) -> None:
    frame = table(context)
    write_csv(frame, context.results / "figure6.csv")
    figure, axes = plt.subplots(2, 4, figsize=(11, 5), sharex=True)
    *panels, corner = axes.flat
    for axis, matrix in zip(panels, LABELS.values(), strict=True):
        for row, (marker, style) in STYLES.items():
            part = frame[(frame.matrix == matrix) & (frame.method == ROWS[row])]
            axis.plot(part.step, part.measured, marker=marker, linestyle=style, markersize=4, label=ROWS[row])
        axis.set_title(matrix)
        axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 4))
    for axis in (*axes[1, :3], axes[0, 3]):
        axis.set_xlabel("step")
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel("entropy")
    corner.axis("off")
    corner.legend(*axes[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.tight_layout()
    ends = frame[(frame.matrix == "k") & frame.step.isin((0, frame.step.max()))]
    ends = ends.groupby("method", sort=False)[["measured", "published"]].agg(lambda v: v.iloc[-1] - v.iloc[0])
    changes = ", ".join(f"{r.Index} {r.measured:+.3f} ({r.published:+.3f})" for r in ends.itertuples())
    note = f"Change over the run for k, measured (read off the paper's figure): {changes}."
    save_figure(figure, context, ARTIFACT, f"{note} {about_runs(context)}")


ARTIFACT = Artifact(
    label="Figure 6",
    caption="Average singular-value entropy (diversity of singular values) of directly trained and POET-trained weights.",
    outputs=("figure6.csv", "figures/figure6.png", "figures/figure6.pdf"),
    runs=runs("adamw", "muon", POET),
    build=build,
)
