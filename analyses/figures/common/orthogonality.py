"""Orthogonality error of Cayley-Neumann along training, k = 0 to 5 (the paper: 0 to 4): what Figures 10 and 23 to 25 share.

The paper (Section 5.3; Appendix "Orthogonality Approximation Quality using Neumann Series") measures e_orth = ||R R' - I||_F / ||I||_F
of R and P in a 130M model that POET-FS (b = 1/2) trains for 10,000 steps. In Figure 10 the error falls back every 200 steps,
at the merges. The paper does not say whether the cosine schedule ended at 10,000 steps. Here it does, so the error falls to
rounding at the end of the run. Where a scale trains for fewer steps, the merge period is still a fiftieth of the run.

The error grows from one merge to the next. It is measured after every step of the first tenth (Figures 10, 23 and 24), then three
times in each merge period: after its first step, half-way and at its end. At the end of a period it is measured before the merge.

The rule for matrices, fixed before any run (the paper chose at random): the up projection of the middle block in Figure 10,
as in Figure 1, and the down projection of the same block in Figure 25.

Theory (``poet.orthogonal``): at one Q of norm below 1 the error is of order ||Q||^(2k+2) for even k and 2 ||Q||^(k+1) for odd k. At
equal Q the error of k = 2 is therefore below that of k = 3; the trained Q may differ between them. With q the eigenvalues of Q/i,
those of R R' are 1 + q^(2k+2) for even k, (1 + q^(k+1))^2 for k = 1 and 5, and (1 - q^(k+1))^2 for k = 3. Merges therefore stretch the
weight, except with k = 3, which shrinks it as long as q stays below 2^(1/4).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from analyses.common.paper_scale import model_label
from analyses.common.plotting import LINES, MARKERS, Axes, numbered_figure, pyplot, save_figure
from analyses.common.published import read_published
from analyses.figures.common.probed import LABELS, along, drawn_seed, layer, line
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Claim
from suite.context import Context
from suite.scale import Scale

MODEL, ROW = "130m", "poet-fs-1_2"
TERMS = range(6)
#: The k that the paper shows; claims are about these alone.
PRINTED_TERMS = TERMS[:5]
STEPS, MERGES = 10_000, 50
PEAK, LAST_END, MEDIAN = "peak, first tenth", "end of the last merge period, first tenth", "end of merge periods, {} tenth"
#: (block, projection, "R" or "P").
Matrix = tuple[int, str, str]
#: For each k, by seed: a run, and its errors (steps,) by matrix, keyed by :func:`name_of`.
Errors = dict[int, list[tuple[RunSpec, dict[str, np.ndarray]]]]
#: Below this, e_orth is the rounding of single precision.
ROUNDING = 1e-8


def first_tenth(steps: int) -> int:
    """The last step that Figures 10, 23 and 24 show."""
    return max(1, steps // 10)


def measured_steps(steps: int, merge_every: int) -> tuple[int, ...]:
    """Every step of the first tenth; then the first, the middle and the last of each merge period."""
    periods = range(first_tenth(steps) // merge_every * merge_every, steps, merge_every)
    later = {start + step for start in periods for step in (1, max(1, merge_every // 2), merge_every)}
    return tuple(sorted({*range(first_tenth(steps) + 1), *(step for step in later if step <= steps)}))


def run(scale: Scale, terms: int, seed: int) -> RunSpec:
    """The run with k = ``terms``, which all four figures read."""
    steps = min(STEPS, scale.settings.models[MODEL].steps)
    merge_every = max(1, steps // MERGES)
    overrides = {"neumann_terms": terms, "merge_every": merge_every}
    at = measured_steps(steps, merge_every)
    return scale.run(MODEL, ROW, seed, overrides=overrides, steps=steps, probes={"orthogonality": at})


def runs(scale: Scale, among: Sequence[int] = TERMS) -> list[RunSpec]:
    return [run(scale, terms, seed) for terms in among for seed in scale.seeds]


def middle(scale: Scale) -> int:
    """The block whose matrices Figures 10 and 25 show."""
    return scale.settings.models[MODEL].layers // 2


def name_of(matrix: Matrix) -> str:
    """The key of a matrix in the probe's measurements: "<layer>.R" or "<layer>.P"."""
    block, projection, side = matrix
    return f"{layer(block, projection)}.{side}"


def errors(context: Context, among: Sequence[int] = TERMS) -> Errors:
    """The errors of the runs with k among the given ones."""
    return {k: [(spec, along(context, spec, "orthogonality")) for spec in runs(context.scale, (k,))] for k in among}


def summaries(spec: RunSpec, values: np.ndarray) -> dict[str, float]:
    """The summary numbers of a matrix's errors (steps,) along a run; NaN where the run had diverged.

    They are the largest error of the first tenth, the error at the end of the last merge period of the first tenth ("later" in
    Figure 10), and the median error at the ends of merge periods in the first, the middle and the last tenth of the run."""
    at, period = np.array(spec.probes["orthogonality"]), spec.parameters["merge_every"]
    width = max(first_tenth(spec.steps), period)  # a merge period that is longer than a tenth still has an end
    ends = (at > 0) & (at % period == 0)
    at_ends, middle_start = at[ends], (spec.steps - width) // 2
    inside = {
        "first": at_ends <= width, "middle": (at_ends > middle_start) & (at_ends <= middle_start + width),
        "last": at_ends > spec.steps - width,
    }
    return {
        PEAK: values[at <= width].max(),
        LAST_END: values[ends][inside["first"]][-1],
        **{MEDIAN.format(where): np.median(values[ends][chosen]) for where, chosen in inside.items()},
    }


def by_terms(context: Context, matrices: Sequence[Matrix], quantity: str) -> list[np.ndarray]:
    """One quantity of :func:`summaries` for :data:`PRINTED_TERMS`, an array (k, matrices) for each seed; NaN where a run had diverged."""
    by_seed = zip(*errors(context, PRINTED_TERMS).values(), strict=True)
    return [np.array([[summaries(spec, own[name_of(m)])[quantity] for m in matrices] for spec, own in runs_of_seed]) for runs_of_seed in by_seed]


def table(context: Context, found: Errors, matrices: Sequence[Matrix], published: Mapping | None = None) -> pd.DataFrame:
    """All :func:`summaries` by matrix and k; ``found`` has all :func:`errors`, ``published`` has (low, high) by (k, quantity)."""
    lines = []
    for matrix in matrices:
        block, projection, side = matrix
        for terms, seeds in found.items():
            by_seed = [summaries(spec, own[name_of(matrix)]) for spec, own in seeds]
            for quantity in by_seed[0]:
                printed = (published or {}).get((terms, quantity), (np.nan, np.nan))
                about = {"model": MODEL, "block": block, "matrix": LABELS[projection], "side": side, "terms": terms}
                lines.append(line(context, [s[quantity] for s in by_seed], "e_orth", printed, **about, quantity=quantity))
    return pd.DataFrame(lines)


def curve(spec: RunSpec, values: np.ndarray, until: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The part of a run's errors (steps,) that a figure shows: steps, errors, and whether each step ends a merge period.

    Step 0 is left out: its error is 0, and the axis is logarithmic."""
    at = np.array(spec.probes["orthogonality"])
    shown = (at <= until) & (at > 0) & np.isfinite(values)
    return at[shown], values[shown], at[shown] % spec.parameters["merge_every"] == 0


def mark_divergence(axis: Axes, context: Context, spec: RunSpec, at: np.ndarray, values: np.ndarray, until: int) -> None:
    """Draw a cross where a run diverged, if that is within the steps shown."""
    record = context.record(spec)
    if record["status"] == "diverged" and record["steps"] <= until and len(at):
        axis.plot(at[-1], values[-1], marker="x", color="black", markersize=11, markeredgewidth=2.5)


def draw(axis: Axes, context: Context, found: Errors, key: str, until: int) -> None:
    """Draw the error of one matrix for every k: a marked line through the ends of merge periods, a thin line through all steps."""
    for terms, seeds in found.items():
        spec, own = seeds[0]
        at, values, ends = curve(spec, own[key], until)
        axis.plot(at, values, color=f"C{terms}", linewidth=0.6, alpha=0.4)
        every = max(1, ends.sum() // 8)
        style = {"color": f"C{terms}", "linestyle": LINES[terms], "marker": MARKERS[terms], "label": f"k={terms}"}
        marks = (terms * every // len(TERMS), every)  # shifted for each k: overlapping lines stay legible
        axis.plot(at[ends], values[ends], **style, linewidth=1.2, markersize=4.5, markevery=marks)
        mark_divergence(axis, context, spec, at, values, until)
    axis.set(yscale="log", xlabel="step")


def draw_each(axes: Sequence[Axes], context: Context, found: Errors, key: str, until: int) -> None:
    """The error of one matrix, a panel for each k, with the other k in grey."""
    first = {terms: seeds[0] for terms, seeds in found.items()}
    curves = {terms: curve(spec, values[key], until) for terms, (spec, values) in first.items()}
    for axis, own in zip(axes, curves, strict=True):
        for terms, (at, values, _) in curves.items():
            look = {"color": f"C{terms}", "linewidth": 1.6, "zorder": 3} if terms == own else {"color": "0.8", "linewidth": 0.7}
            axis.plot(at, values, **look)
        mark_divergence(axis, context, first[own][0], *curves[own][:2], until)
        axis.set(yscale="log", xlabel="step")


def note(context: Context, drawn: str) -> str:
    """The note of the caption: the runs, how they are drawn, and which of them diverged."""
    specs = [run(context.scale, terms, context.scale.seeds[0]) for terms in TERMS]
    diverged = ", ".join(str(k) for k, spec in enumerate(specs) if context.record(spec)["status"] == "diverged")
    about = f"Model: {model_label(context.scale, MODEL)}, {specs[0].steps:,} steps, a merge every {specs[0].parameters['merge_every']}."
    crosses = f"Crosses: diverged (k = {diverged})." if diverged else ""
    return " ".join(filter(None, (about, drawn, crosses, drawn_seed(context))))


def artifact(
    number: int, caption: str, panels: Callable[[Scale], list[Matrix]], whole_run: bool = False, each: bool = False,
    published: Mapping | None = None, claims: tuple[Claim, ...] = (),
) -> Artifact:
    """A figure of the error in the first tenth of the run or in the whole run; see :func:`table` for ``published``.

    Each matrix has one panel with all k. With ``each``, it has a row of panels instead, one for each k."""

    def build(context: Context) -> None:
        matrices, measured, title = panels(context.scale), errors(context), model_label(context.scale, MODEL)
        steps = run(context.scale, TERMS[0], context.scale.seeds[0]).steps
        until = steps if whole_run else first_tenth(steps)
        columns = len(TERMS) if each else min(4, len(matrices))
        rows = len(matrices) if each else -(-len(matrices) // columns)
        size = (2.1 * columns if each else 9.0 if columns == 1 else 3.6 * columns, 0.8 + 3 * rows)
        figure, axes = pyplot().subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
        for i, matrix in enumerate(matrices):
            block, projection, side = matrix
            key, name = name_of(matrix), f"{side} of {LABELS[projection]}, block {block}"
            if each:
                draw_each(axes[i], context, measured, key, until)
                axes[i, 0].set_ylabel(f"{name}\n$e_{{orth}}$")
            else:
                draw(axes.flat[i], context, measured, key, until)
                axes.flat[i].set_title(name)
        axes[0, 0].set_ylim(bottom=max(ROUNDING, axes[0, 0].get_ylim()[0]))
        for axis in axes.flat:
            axis.tick_params(labelbottom=True)
            axis.locator_params(axis="x", nbins=4)
        for axis in axes.flat[rows * columns if each else len(matrices) :]:
            axis.axis("off")
        if each:
            for axis, terms in zip(axes[0], TERMS, strict=True):
                axis.set_title(f"k = {terms}")
            figure.suptitle(title)
            figure.tight_layout()
        else:
            for row in axes:
                row[0].set_ylabel("orthogonality error $e_{orth}$")
            handles = axes[0, 0].get_legend_handles_labels()
            figure.legend(*handles, loc="upper center", ncol=len(TERMS), frameon=False, title=title)
            figure.tight_layout(rect=(0, 0, 1, 1 - 0.5 / figure.get_figheight()))
        drawn = "Grey: the other k." if each else "Markers: ends of merge periods; thin lines: between them."
        save_figure(figure, table(context, measured, matrices, published), context, found, note(context, drawn))

    found = numbered_figure(number, caption, runs=runs, build=build, models=(MODEL,), claims=claims)
    return found


def read_figure10() -> dict[tuple[int, str], tuple[float, float]]:
    """(low, high) that was read off Figure 10, by (k, quantity)."""
    return {(int(p.terms), p.quantity): (float(p.low), float(p.high)) for p in read_published("figure10").itertuples()}
