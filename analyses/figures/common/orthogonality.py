"""The error of Cayley-Neumann along training, for k = 0 to 5 terms: what Figures 10 and 23 to 25 share.

The paper (Section 5.3; Appendix "Orthogonality Approximation Quality using Neumann Series"): e_orth = ||R R' - I||_F / ||I||_F
of R and P in a 130M model that POET-FS (b = 1/2) trains for 10,000 steps; in Figure 10 the error falls back every 200 steps,
at the merges. It does not say whether the cosine schedule ended at 10,000 steps; here it does, so that the error falls to
rounding at the end of the run. Where a scale trains for fewer steps, the merges keep their share, a fiftieth of the run.

The error grows from one merge to the next and is measured before the merge that is due: after every step of the first
tenth, as in Figures 10, 23 and 24, and then three times in each merge period: after its first step, half-way, and at its end.

The rule for matrices, fixed before any run (the paper chose at random): the up projection of the middle block in Figure 10,
as in Figure 1, and the down projection of the same block in Figure 25.

Theory (``poet.orthogonal``): at one Q of norm below 1 the error is of order ||Q||^(2k+2) for even k and 2 ||Q||^(k+1) for odd k, so that
k = 2 should be below k = 3, not above it. Q is trained, and need not be the same: with q the eigenvalues of Q/i, R R' has
1 + q^(2k+2) for even k, (1 + q^(k+1))^2 for k = 1, 5 and (1 - q^(k+1))^2 for k = 3. Every merge then stretches the weight,
except with k = 3, which shrinks it as long as q stays below 2^(1/4).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analyses.common.plotting import LINES, MARKERS, numbered_figure, plt, save_figure
from analyses.common.published import read_published
from analyses.figures.common.probed import LABELS, along, layer, line, several_seeds
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Claim
from suite.context import Context
from suite.scale import Scale

MODEL, ROW = "130m", "poet-fs-1_2"
TERMS = range(6)
STEPS, MERGES = 10_000, 50
PEAK, LAST_END, MEDIAN = "peak, first tenth", "end of the last merge period, first tenth", "end of merge periods, {} tenth"
#: (block, projection, "R" or "P").
Matrix = tuple[int, str, str]
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
    """The run with k terms that all four figures read."""
    steps = min(STEPS, scale.settings.models[MODEL].steps)
    merge_every = max(1, steps // MERGES)
    overrides = {"neumann_terms": terms, "merge_every": merge_every}
    at = measured_steps(steps, merge_every)
    return scale.run(MODEL, ROW, seed, overrides=overrides, steps=steps, probes={"orthogonality": at})


def runs(scale: Scale) -> list[RunSpec]:
    return [run(scale, terms, seed) for terms in TERMS for seed in scale.seeds]


def middle(scale: Scale) -> int:
    """The block whose matrices stand for all."""
    return scale.settings.models[MODEL].layers // 2


def errors(context: Context) -> dict[int, list[dict[str, np.ndarray]]]:
    """{k: by seed: {"<layer>.R" or "<layer>.P": (steps,)}}."""
    seeds = context.scale.seeds
    return {terms: [along(context, run(context.scale, terms, seed), "orthogonality") for seed in seeds] for terms in TERMS}


def summaries(spec: RunSpec, values: np.ndarray) -> dict[str, float]:
    """The numbers of a curve, from the (steps,) errors at a run's measured steps; NaN where it had diverged before.

    They are the largest error of the first tenth, and the error at the ends of merge periods: of the last period of the
    first tenth (what is "later" in Figure 10), and medians over the first, the middle and the last tenth of the run."""
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
    """One of :func:`summaries` by seed: (k, matrices); NaN where a run had diverged before."""
    names = [f"{layer(block, projection)}.{side}" for block, projection, side in matrices]
    found, values = errors(context), []
    for i, seed in enumerate(context.scale.seeds):
        specs = [run(context.scale, terms, seed) for terms in TERMS]
        rows = zip(specs, found.values(), strict=True)
        values.append(np.array([[summaries(spec, own[i][name])[quantity] for name in names] for spec, own in rows]))
    return values


def table(context: Context, matrices: Sequence[Matrix], published: Mapping | None = None) -> pd.DataFrame:
    """Peak and medians of the error, by matrix and k; ``published`` has (low, high) by (k, quantity)."""
    found, lines = errors(context), []
    for block, projection, side in matrices:
        for terms, seeds in found.items():
            specs = [run(context.scale, terms, seed) for seed in context.scale.seeds]
            by_seed = [summaries(s, f[f"{layer(block, projection)}.{side}"]) for s, f in zip(specs, seeds, strict=True)]
            for quantity in by_seed[0]:
                printed = (published or {}).get((terms, quantity), (np.nan, np.nan))
                about = {"model": MODEL, "block": block, "matrix": LABELS[projection], "side": side, "terms": terms}
                lines.append(line(context, [s[quantity] for s in by_seed], "e_orth", printed, **about, quantity=quantity))
    return pd.DataFrame(lines)


def draw(axis: Axes, context: Context, found: dict, key: str, whole_run: bool) -> None:
    """The error of one matrix for every k; a cross where a run diverged.

    The whole run is drawn by the ends of its merge periods, thin lines between them; its first tenth in full.
    """
    for terms, seeds in found.items():
        spec = run(context.scale, terms, context.scale.seeds[0])
        at, values = np.array(spec.probes["orthogonality"]), seeds[0][key]
        until = spec.steps if whole_run else first_tenth(spec.steps)
        # 0 at the start is left out: the scale is logarithmic.
        shown = (at <= until) & (at > 0) & np.isfinite(values)
        thick = shown & (at % spec.parameters["merge_every"] == 0) if whole_run else shown
        if whole_run:
            axis.plot(at[shown], values[shown], color=f"C{terms}", linewidth=0.6, alpha=0.5)
        every = max(1, thick.sum() // 8)
        style = {"color": f"C{terms}", "linestyle": LINES[terms], "marker": MARKERS[terms], "label": f"k={terms}"}
        marks = (terms * every // len(TERMS), every)  # side by side where lines overlap
        axis.plot(at[thick], values[thick], **style, linewidth=1.2, markersize=4.5, markevery=marks)
        record = context.record(spec)
        if record["status"] == "diverged" and record["steps"] <= until and shown.any():
            axis.plot(at[shown][-1], values[shown][-1], marker="x", color="black", markersize=11, markeredgewidth=2.5)
    axis.set(yscale="log", xlabel="step")


def note(context: Context, frame: pd.DataFrame, where: str) -> str:
    """What the runs were, how they ended, and how the errors compare between the k."""
    specs = {terms: run(context.scale, terms, context.scale.seeds[0]) for terms in TERMS}
    spec, records = specs[TERMS[0]], {terms: context.record(spec) for terms, spec in specs.items()}
    failed = ", ".join(f"k={k} at step {r['steps']:,}" for k, r in records.items() if r["status"] == "diverged")
    medians = frame[frame.quantity == MEDIAN.format(where)].groupby("terms").measured.median()
    errors = ", ".join(f"{medians[k]:.1e}" for k in TERMS)
    perplexities = ", ".join(f"{r['validation_perplexity']:.1f}" for r in records.values())
    return (
        f"Model: {MODEL}, {spec.steps:,} steps, a merge every {spec.parameters['merge_every']}. "
        f"{f'Diverged (cross): {failed}.' if failed else 'No run diverged.'} For k = 0 to {TERMS[-1]}: error at the end of "
        f"merge periods, median of the {where} tenth: {errors}; final perplexity: {perplexities}. {several_seeds(context)}"
    ).strip()


def artifact(
    number: int, caption: str, panels: Callable[[Scale], list[Matrix]], whole_run: bool = False,
    published: Mapping | None = None, claims: tuple[Claim, ...] = (),
) -> Artifact:
    """A figure of the error in the first tenth or the whole run, a panel for each matrix; see :func:`table`."""

    def build(context: Context) -> None:
        matrices = panels(context.scale)
        frame = table(context, matrices, published)
        measured, columns = errors(context), min(4, len(matrices))
        rows = -(-len(matrices) // columns)
        width = 9.0 if columns == 1 else 3.6 * columns
        figure, axes = plt.subplots(rows, columns, figsize=(width, 0.6 + 3 * rows), sharex=True, sharey=True, squeeze=False)
        for axis, (block, projection, side) in zip(axes.flat, matrices, strict=False):
            draw(axis, context, measured, f"{layer(block, projection)}.{side}", whole_run)
            axis.set_title(f"{side} of {LABELS[projection]}, block {block}")
            axis.tick_params(labelbottom=True)
        axes[0, 0].set_ylim(bottom=max(ROUNDING, axes[0, 0].get_ylim()[0]))
        for row in axes:
            row[0].set_ylabel("orthogonality error $e_{orth}$")
        for axis in axes.flat[len(matrices) :]:
            axis.axis("off")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper center", ncol=len(TERMS), frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / figure.get_figheight()))
        save_figure(figure, frame, context, found, note(context, frame, "middle" if whole_run else "first"))

    found = numbered_figure(number, caption, runs=runs, build=build, models=(MODEL,), claims=claims)
    return found


def read_figure10() -> dict[tuple[int, str], tuple[float, float]]:
    """(low, high) that was read off Figure 10, by (k, quantity)."""
    return {(int(p.terms), p.quantity): (float(p.low), float(p.high)) for p in read_published("figure10").itertuples()}
