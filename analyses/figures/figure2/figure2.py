"""Figure 2: the three phases of POET's training: the cone, v'Rv along training, and loss with validation perplexity.

Runs and definitions: ``analyses.figures.common.probing``; the rule for the phases: ``analyses.phases``. The middle panel shows R
of the seven matrix types, averaged over blocks. ``results/figure2.csv`` also has P, and answers three more questions. Are R and
P still orthogonal at the end? Does the control with the exact Cayley map find the same cone? Which formula for the standard
deviation of v'Rv holds, the printed or the corrected one? With the right one, the deviations of v'Rv from Tr(R)/m, over all R and
P at the last step and divided by the predicted standard deviation, have a root mean square near 1.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.patches import Ellipse

from analyses.common.paper_scale import model_label
from analyses.common.plotting import LINES, MARKERS, Axes, numbered_figure, pyplot, save_figure
from analyses.common.published import read_published
from analyses.figures.common.probed import LABELS, drawn_seed, line
from analyses.figures.common.probing import (
    COSINE, MODEL, SQUARE, TRACE, both_sides, dimensions, predicted_deviation, run, stacked,
)
from analyses.figures.figure2.phase_claims import CLAIMS
from analyses.phases import drift, find_phases, length_of_second, mark_phases
from poet.training.spec import RunSpec
from suite.context import Context
from suite.scale import Scale

MAPS = {False: "Cayley-Neumann", True: "exact Cayley (control)"}


def runs(scale: Scale) -> list[RunSpec]:
    return [run(scale, seed, exact) for exact in MAPS for seed in scale.seeds]


def table(context: Context) -> pd.DataFrame:
    """Final cosines by matrix type, phases, orthogonality, deviations from theory and perplexity, with the control."""
    printed = {p.quantity: (float(p.low), float(p.high)) for p in read_published("figure2").itertuples()}
    lines = []
    for exact, name in MAPS.items():
        specs = [run(context.scale, seed, exact) for seed in context.scale.seeds]
        finals = [context.record(spec)["validation_perplexity"] for spec in specs]
        diverged = sum(map(math.isnan, finals))  # set here, because a missing phase (NaN) is no divergence

        def add(quantity, values, unit, side="both", matrix="all", name=name, exact=exact, diverged=diverged):
            published = (math.nan, math.nan) if exact else printed.get(quantity, (math.nan, math.nan))
            about = {"model": MODEL, "map": name, "quantity": quantity, "side": side, "matrix": matrix}
            lines.append(line(context, values, unit, published, **about) | {"diverged": diverged})

        for side in "RP":
            rotations = [stacked(context, spec, "rotations", side) for spec in specs]
            errors = [stacked(context, spec, "orthogonality", side) for spec in specs]
            for p, matrix in LABELS.items():
                add("final cosine", [r[p][:, -1, COSINE].mean() for r in rotations], "cosine", side, matrix)
                traces = [r[p][:, -1, TRACE].mean() for r in rotations]
                add("final trace / dimension", traces, "trace / dimension", side, matrix)
                add("final orthogonality error", [e[p][:, -1].mean() for e in errors], "e_orth", side, matrix)
        rotations = [both_sides(context, spec, "rotations") for spec in specs]
        at, m = np.array(specs[0].probes["rotations"]), dimensions(specs[0].architecture)
        add("lowest trace / dimension", [r[:, -1, TRACE].min() for r in rotations], "trace / dimension")
        errors = [both_sides(context, spec, "orthogonality") for spec in specs]
        add("largest orthogonality error", [e.max() for e in errors], "e_orth")
        found = [find_phases(at, r[..., COSINE]) for r in rotations]
        add("end of phase I", [f.first_end for f in found], "share of training")
        add("start of phase III", [f.last_start for f in found], "share of training")
        lengths = [length_of_second(at, r[..., COSINE], drift(at, specs[0])) for r in rotations]
        for quantity in ("length of phase II", "length of phase II, text"):
            add(quantity, lengths, "share of training")
        for formula, sign in (("corrected", -1), ("printed", 1)):
            last = [r[:, -1].T[[COSINE, TRACE, SQUARE]] for r in rotations]
            scores = [(c - t) / predicted_deviation(t, s, m, sign) for c, t, s in last]
            add(f"deviation of v'Rv, {formula} formula", [np.sqrt(np.mean(z**2)) for z in scores], "standard deviations")
        add("final perplexity", finals, "perplexity")
    return pd.DataFrame(lines)


def draw_cone(axis: Axes, cosine: float) -> None:
    """Draw v, the cone around it at the measured angle, and a few Rv on the cone."""
    angle = math.acos(np.clip(cosine, -1, 1))
    radius, height = math.sin(angle), math.cos(angle)
    axis.add_patch(Ellipse((0, height), 2 * radius, 0.5 * radius, facecolor="0.92", edgecolor="0.4"))
    for end in (-radius, radius):
        axis.plot((0, end), (0, height), color="0.4", linewidth=1)
    for turn in (-2.4, -1.3, -0.5, 0.9):
        tip = (radius * math.cos(turn), height + 0.25 * radius * math.sin(turn))
        axis.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "->", "color": "C1", "linestyle": "--"})
    axis.annotate("", (0, 1), (0, 0), arrowprops={"arrowstyle": "->", "color": "C0", "linewidth": 2})
    arc = np.linspace(0, angle, 30)
    axis.plot(0.3 * np.sin(arc), 0.3 * np.cos(arc), color="black", linewidth=1)
    axis.text(0.36 * math.sin(angle + 0.2), 0.36 * math.cos(angle + 0.2), f"{math.degrees(angle):.0f}°", va="center")
    axis.text(0, 1.02, "v", ha="center", va="bottom")
    axis.text(radius + 0.04, height, "Rv", ha="left", va="center", color="C1")
    axis.set(xlim=(-1.1, 1.2), ylim=(-0.05, 1.15), aspect="equal", title=f"v'Rv = {cosine:.2f} at the end")
    axis.axis("off")


def build(context: Context) -> None:
    frame = table(context)
    spec = run(context.scale, context.scale.seeds[0])
    at = np.array(spec.probes["rotations"])
    means = [values[..., COSINE].mean(0) for values in stacked(context, spec, "rotations", "R").values()]
    cosines = both_sides(context, spec, "rotations")[..., COSINE]
    phases = find_phases(at, cosines)
    follows = phases.second > 0 and length_of_second(at, cosines, drift(at, spec)) == 0
    figure, (left, middle, right) = pyplot().subplots(1, 3, figsize=(13, 4), width_ratios=(0.8, 1.2, 1.2))
    final = float(np.mean([values[-1] for values in means]))
    if math.isnan(final):
        left.set(title="diverged")
    else:
        draw_cone(left, final)
    for values, matrix, marker, style in zip(means, LABELS.values(), MARKERS, LINES, strict=False):
        middle.plot(at, values, marker=marker, linestyle=style, markersize=4, markevery=4, label=matrix)
    figure.suptitle(model_label(context.scale, MODEL))
    middle.set(xlabel="step", ylabel="v'Rv, mean over blocks")
    middle.legend(ncol=2, fontsize="small")
    history = context.history(spec)
    evaluated = history.dropna(subset="validation_perplexity")
    (loss,) = right.plot(history.step, history.train_loss, color="C0", linewidth=0.8)
    twin = right.twinx()
    (perplexity,) = twin.plot(evaluated.step, evaluated.validation_perplexity, color="C1", marker="o", linestyle="--")
    right.set(xlabel="step", ylabel="train loss")
    twin.set(ylabel="validation perplexity")
    twin.grid(visible=False)
    twin.legend((loss, perplexity), ("train loss", "validation perplexity"), loc="upper right")
    mark_phases((middle, right), phases, at[-1])
    figure.tight_layout()
    counted = "The cosines settle no sooner than the learning rate alone would let them, so the claims count no three phases." if follows else ""
    note = " ".join(filter(None, (f"Model: {model_label(context.scale, MODEL)}. {phases}", counted, drawn_seed(context))))
    save_figure(figure, frame, context, ARTIFACT, note)


ARTIFACT = numbered_figure(
    2, "POET's three learning phases. Left: the cone; middle: vector probing of R; right: train loss and validation perplexity.",
    runs=runs, build=build, models=(MODEL,), claims=CLAIMS,
)
