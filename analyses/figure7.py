"""Figure 7: hyperspherical energy of all matrices together along training, with AdamW, Muon and POET.

The energy of a matrix is ``poet.diagnostics.hyperspherical_energy``; the figure shows the sum over all linear layers. AdamW and
Muon begin at one standard Gaussian draw, POET at another, normalized one: directions of neurons are distributed alike in
both, so the sums begin close to each other, and not at the same value. What compares is the change from a method's own
start. The paper prints no value; its text says that POET's energy stays small, and Muon's lies below AdamW's.
"""

from __future__ import annotations

import pandas as pd

from analyses.artifact import Artifact, Context
from analyses.figures import plt, save_figure, sns
from analyses.probed import line
from analyses.spectra import POET, ROWS, STYLES, about_runs, measured, model, runs
from analyses.tables import write_csv


def table(context: Context) -> pd.DataFrame:
    """One line per method and step: the sum, and its change relative to the start."""
    lines = []
    for row, label in ROWS.items():
        steps, seeds = measured(context, row, "energy")
        totals = [sum(found.values()) for found in seeds]
        for i, step in enumerate(steps):
            about = {"model": model(context.scale), "method": label, "step": step}
            lines.append(line(context, [t[i] for t in totals], "energy", **about, quantity="sum over matrices"))
            changes = [t[i] / t[0] - 1 for t in totals]
            lines.append(line(context, changes, "relative", **about, quantity="change from the start"))
    return pd.DataFrame(lines)


def build(context: Context) -> None:
    frame = table(context)
    write_csv(frame, context.results / "figure7.csv")
    figure, axis = plt.subplots(figsize=(5.2, 4))
    for colour, (row, (marker, style)) in zip(sns.color_palette(), STYLES.items(), strict=False):
        part = frame[(frame.method == ROWS[row]) & (frame.quantity == "sum over matrices")]
        axis.plot(part.step, part.measured, marker=marker, linestyle=style, color=colour, label=ROWS[row])
        axis.axhline(part.measured.iloc[0], color=colour, linewidth=0.8, alpha=0.6, linestyle=style)
    axis.set(xlabel="step", ylabel="hyperspherical energy, sum over matrices")
    axis.legend()
    last = frame[(frame.quantity == "change from the start") & (frame.step == frame.step.max())].dropna(subset="measured")
    order = " < ".join(f"{r.method} {r.measured:+.2%}" for r in last.sort_values("measured").itertuples())
    note = f"Horizontal lines: the energy at the start. Change over the run: {order}."
    save_figure(figure, context, ARTIFACT, f"{note} {about_runs(context)}")


ARTIFACT = Artifact(
    label="Figure 7",
    caption="Hyperspherical energy of AdamW-, Muon- and POET-trained weights.",
    outputs=("figure7.csv", "figures/figure7.png", "figures/figure7.pdf"),
    runs=runs("adamw", "muon", POET),
    build=build,
)
