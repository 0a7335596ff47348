"""Figure 7: hyperspherical energy of all matrices together along training, with AdamW, Muon and POET.

The energy of a matrix is ``poet.diagnostics.hyperspherical_energy``; the figure shows the sum over all linear layers. AdamW and
Muon start from the same standard Gaussian draw, POET from a normalized one. The directions of neurons have the same
distribution in both, so the sums start close to each other, but not at the same value. Methods are therefore compared by their
change from their own start. The paper prints no value; its text says that POET's energy stays small, and Muon's lies below AdamW's.
"""

from functools import partial

import numpy as np
import pandas as pd

from analyses.common.evidence import SERIES_ERROR, SIZE, TWO_DIGITS, over_seeds
from analyses.common.looks import look
from analyses.common.paper_scale import model_label
from analyses.common.plotting import bars, numbered_figure, pyplot, save_figure, spread_note
from analyses.figures.common.probed import line
from analyses.figures.common.spectra import POET, ROWS, about_runs, largest_change, measured, model, runs, steps_of
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context


def totals_of(context: Context, row: str) -> list[np.ndarray]:
    """The energies (steps,) of a row summed over matrices, by seed."""
    return [sum(found.values()) for found in measured(context, row, "energy")]


def table(context: Context) -> pd.DataFrame:
    """One line per method and step: the sum, and its change relative to the start."""
    lines = []
    for row, label in ROWS.items():
        totals = totals_of(context, row)
        for i, step in enumerate(steps_of(context)):
            about = {"model": model(context.scale), "method": label, "step": step}
            lines.append(line(context, [t[i] for t in totals], "energy", **about, quantity="sum over matrices"))
            changes = [t[i] / t[0] - 1 for t in totals]
            lines.append(line(context, changes, "relative", **about, quantity="change from the start"))
    return pd.DataFrame(lines)


def below(context: Context, row: str, other: str) -> Evidence:
    """Growth of the energy relative to its start, with ``row`` minus with ``other``, by seed."""
    ours, theirs = ([t[-1] / t[0] for t in totals_of(context, name)] for name in (row, other))
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    return over_seeds(differences, runs(row, other)(context.scale))


CLAIMS = (
    Claim(
        key="figure7-poet-stays-small", place="Section 4, POET minimizes hyperspherical energy", kind="invariance",
        says="POET keeps the small hyperspherical energy of its initialization, if not exactly.",
        rule="Largest change of the energy, summed over matrices, at any measurement, relative to its start: at most 5%, which two "
        "digits may not show.",
        unit="relative", region=TWO_DIGITS,
        measure=lambda context: over_seeds([largest_change(t) for t in totals_of(context, POET)], runs(POET)(context.scale), bounds=SIZE),
        paper_only=SERIES_ERROR,
    ),
    Claim(
        key="figure7-poet-below-adamw", place="Section 4; Figure 7", kind="ordering",
        says="POET keeps the hyperspherical energy below AdamW's.",
        rule="Change of the energy over the run, relative to its start, POET minus AdamW: below 0.",
        unit="relative", region=NEGATIVE, measure=partial(below, row=POET, other="adamw"),
    ),
    Claim(
        key="figure7-muon-below-adamw", place="Section 4, POET minimizes hyperspherical energy", kind="ordering",
        says="Muon minimizes the hyperspherical energy better than AdamW.",
        rule="Change of the energy over the run, relative to its start, Muon minus AdamW: below 0.",
        unit="relative", region=NEGATIVE, measure=partial(below, row="muon", other="adamw"),
    ),
)


def build(context: Context) -> None:
    frame = table(context)
    figure, axis = pyplot().subplots(figsize=(5.2, 4))
    for row, label in ROWS.items():
        part = frame[(frame.method == label) & (frame.quantity == "sum over matrices")]
        drawn = look(row)
        axis.errorbar(part.step, part.measured, bars(part["std"]), **drawn, capsize=2, label=label)
        axis.axhline(part.measured.iloc[0], color=drawn["color"], linewidth=0.8, alpha=0.6, linestyle=drawn["linestyle"])
    axis.set(title=model_label(context.scale, model(context.scale)), xlabel="step", ylabel="hyperspherical energy, sum over matrices")
    axis.legend()
    figure.tight_layout()
    note = f"Horizontal lines: the energy at the start. {about_runs(context)} {spread_note(context)}"
    save_figure(figure, frame, context, ARTIFACT, note)


ARTIFACT = numbered_figure(
    7, "Hyperspherical energy of AdamW-, Muon- and POET-trained weights.",
    runs=runs("adamw", "muon", POET), build=build, claims=CLAIMS,
)
