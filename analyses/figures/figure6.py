"""Figure 6: singular-value entropy along training with AdamW, Muon and POET, by matrix type, averaged over blocks.

The entropy is that of Section 4 with the minus sign that the paper's formula lacks, normalized by log n: 1 means that all
singular values are equal. Runs and steps: ``analyses.figures.common.spectra``. Published values were read off the figure, at its start,
at its first measurement (5,000 steps) and at its end. At widths other than the paper's the entropy starts at another value: a
fresh Gaussian weight with sides r <= s has an entropy of about 1 - r/(2 s ln r), 0.920 at 512 x 512 and 0.970 at 512 x 1376.
"""

from functools import partial

import numpy as np
import pandas as pd
import torch

from analyses.common.evidence import SERIES_ERROR, SIZE, as_read, exactly, over_seeds
from analyses.common.looks import look
from analyses.common.paper_scale import matrix_shapes, model_label
from analyses.common.plotting import bars, numbered_figure, save_figure, spread_note
from analyses.common.published import read_published
from analyses.figures.common.probed import LABELS, layer, line, matrix_panels
from analyses.figures.common.spectra import POET, ROWS, about_runs, measured, model, runs, steps_of
from poet.diagnostics import singular_value_entropy
from poet.initialization import normalized, standard
from suite.claim import NEGATIVE, POSITIVE, Claim, Evidence
from suite.context import Context

#: The matrix type whose values along training were read off; in the other panels the curves have the same order.
READ = "k"
#: Number of fresh weights compared with each printed start. Entropies of one shape differ by less than 0.0002 between draws.
DRAWS = 3


def entropies(context: Context, row: str) -> dict[str, list[np.ndarray]]:
    """The entropies (steps,) of a row averaged over blocks, by matrix type and seed."""
    depth, seeds, found = context.scale.settings.models[model(context.scale)].layers, measured(context, row, "spectrum"), {}
    for projection, matrix in LABELS.items():
        spectra = [np.stack([values[layer(block, projection)] for block in range(depth)]) for values in seeds]
        found[matrix] = [singular_value_entropy(torch.from_numpy(s)).mean(0).numpy() for s in spectra]
    return found


def table(context: Context) -> pd.DataFrame:
    """One line per method, matrix type and step."""
    printed = {(p.row, p.matrix, p.when): float(p.value) for p in read_published("figure6").itertuples()}
    name, steps, lines = model(context.scale), steps_of(context), []
    when = {0: "start", 1: "first", len(steps) - 1: "end"}
    for row, label in ROWS.items():
        for matrix, entropy in entropies(context, row).items():
            for i, step in enumerate(steps):
                published = printed.get((row, matrix, when.get(i)), np.nan)
                about = {"model": name, "method": label, "matrix": matrix, "step": step}
                lines.append(line(context, [e[i] for e in entropy], "entropy", published, **about))
    return pd.DataFrame(lines)


def starts(context: Context) -> Evidence:
    """Largest distance of the entropy of fresh weights, in the shapes of the paper's 60M model, from the printed starts."""
    printed = read_published("figure6").query("when == 'start'")
    generator, distances = torch.Generator().manual_seed(0), {}
    for p in printed.itertuples():
        # Muon starts from AdamW's weights.
        row, initialize = (POET, normalized) if p.row == POET else ("adamw", standard)
        m, n = matrix_shapes("60m", row)[layer(0, f"{p.matrix}_proj")]
        if (initialize, m, n, p.value) in distances:
            continue
        weights = torch.stack([initialize(n, m, generator) for _ in range(DRAWS)])
        gram = weights @ weights.mT if n <= m else weights.mT @ weights  # an eigenvalue below 0 is rounding
        spectra = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
        distances[initialize, m, n, p.value] = float((singular_value_entropy(spectra) - float(p.value)).abs().max())
    return exactly(max(distances.values()), note=f"{len(distances)} kinds of weights, {DRAWS} draws each", n=len(printed))


def stays(context: Context) -> Evidence:
    by_matrix = entropies(context, POET).values()
    worst = [max(float(np.abs(e - e[0]).max()) for e in seed) for seed in zip(*by_matrix, strict=True)]
    return over_seeds(worst, runs(POET)(context.scale), bounds=SIZE)


def above(context: Context, row: str, other: str) -> Evidence:
    """Change of the entropy over the run (mean over matrix types) with ``row`` minus with ``other``, by seed."""
    changes = [np.mean([[e[-1] - e[0] for e in seeds] for seeds in entropies(context, name).values()], axis=0) for name in (row, other)]
    return over_seeds((changes[0] - changes[1]).tolist(), runs(row, other)(context.scale))


def off_print(context: Context) -> Evidence:
    """The largest distance from the values that were read off along training, by seed."""
    printed = read_published("figure6").query("when != 'start' and row != @POET")
    found = {row: entropies(context, row) for row in set(printed.row)}
    place = {"first": 1, "end": -1}
    distances = [[abs(e[place[p.when]] - float(p.value)) for e in found[p.row][p.matrix]] for p in printed.itertuples()]
    worst = np.max(distances, axis=0)
    return over_seeds(worst.tolist(), runs("adamw", "muon")(context.scale), f"{len(printed)} values", SIZE)


#: Half a unit in the last digit of the values that were read.
HALF_UNIT = max((high - low) / 2 for low, high in map(as_read, read_published("figure6").value))
CLAIMS = (
    Claim(
        key="figure6-starts", place="Figure 6", kind="number", exact=True,
        says="The entropy starts at 0.920 for q, k and o, and at 0.970 for the feed-forward matrices, with every method.",
        rule="Largest distance of the entropy of fresh weights, in the shapes of the paper's 60M model and initialized as each "
        "method has them, from the value that was read: at most half a unit of its last digit.",
        unit="entropy", region=(0.0, HALF_UNIT), measure=starts,
    ),
    Claim(
        key="figure6-poet-stays", place="Figure 6", kind="invariance",
        says="With POET the entropy stays where it starts.",
        rule="Largest change of the entropy from its start, of any matrix type (mean over blocks) at any measurement: at most one "
        "unit of the last digit read, since start and end are printed alike.",
        unit="entropy", region=(0.0, 2 * HALF_UNIT), measure=stays,
        paper_only=SERIES_ERROR,
    ),
    Claim(
        key="figure6-adamw-dips", place="Figure 6", kind="phase",
        says="With AdamW the entropy dips at the first measurement, and then recovers somewhat.",
        rule="Entropy of k at the first measurement (a tenth of the run) minus the lower of its start and its end: below 0.",
        unit="entropy", region=NEGATIVE,
        measure=lambda context: over_seeds([e[1] - min(e[0], e[-1]) for e in entropies(context, "adamw")[READ]], runs("adamw")(context.scale)),
    ),
    Claim(
        key="figure6-poet-above-muon", place="Figure 6", kind="ordering",
        says="POET keeps a higher diversity of singular values than Muon.",
        rule="Change of the entropy over the run, mean over matrix types, POET minus Muon: above 0.",
        unit="entropy", region=POSITIVE, measure=partial(above, row=POET, other="muon"),
    ),
    Claim(
        key="figure6-muon-above-adamw", place="Figure 6", kind="ordering",
        says="Muon keeps a higher diversity of singular values than AdamW.",
        rule="Change of the entropy over the run, mean over matrix types, Muon minus AdamW: above 0.",
        unit="entropy", region=POSITIVE, measure=partial(above, row="muon", other="adamw"),
    ),
    Claim(
        key="figure6-values", place="Figure 6", kind="number",
        says="For k, AdamW's entropy is 0.848 at the first measurement and 0.861 at the end, Muon's 0.892.",
        rule="Largest distance from the three values that were read: at most half a unit of their last digit.",
        unit="entropy", region=(0.0, HALF_UNIT), measure=off_print,
        paper_only="the values belong to the paper's widths and to 50,000 steps",
    ),
)


def build(context: Context) -> None:
    frame = table(context)
    figure, panels, corner = matrix_panels("entropy")
    for projection, axis in panels.items():
        for row, label in ROWS.items():
            part = frame[(frame.matrix == LABELS[projection]) & (frame.method == label)]
            axis.errorbar(part.step, part.measured, bars(part["std"]), **look(row), markersize=4, capsize=2, label=label)
            axis.plot(part.step, part.published, **{**look(row), "linestyle": ""}, markersize=10, fillstyle="none", label=f"{label}, paper")
        axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 4))
    handles = sorted(zip(*axis.get_legend_handles_labels(), strict=True), key=lambda one: one[1].endswith("paper"))
    corner.legend(*zip(*handles, strict=True), loc="center", frameon=False, title=model_label(context.scale, model(context.scale)))
    figure.tight_layout()
    note = "Large hollow markers: read off the paper's figure, at the same share of the run."
    save_figure(figure, frame, context, ARTIFACT, f"{note} {about_runs(context)} {spread_note(context)}")


ARTIFACT = numbered_figure(
    6, "Average singular-value entropy (diversity of singular values) of directly trained and POET-trained weights.",
    runs=runs("adamw", "muon", POET), build=build, claims=CLAIMS,
)
