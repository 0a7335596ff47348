"""Singular values and hyperspherical energy along training: what Figures 1, 6, 7 and 17 to 22 share.

The paper (Appendix "Training Dynamics of Singular Values"): a 60M model is trained for 50,000 of its 300,000 steps by
AdamW and by POET-FS (b = 1/2), measured every 5,000 steps, with a merge before each measurement. It does not say whether
the cosine schedule ended at 50,000 steps; here it does, as in every run of the suite.

Here the same three runs (AdamW, POET, and Muon for Figures 6 and 7) serve all nine figures. They are measured every tenth of
the run, rounded down to a multiple of POET's T_m. A regular merge then comes before each measurement, and no extra merge is
needed (5,000 is not a multiple of the paper's T_m = 400). The model is 60m. If 60m has fewer than three blocks, it is the
first model that has three, because Figures 17 to 22 show the blocks in three groups.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from analyses.common.paper_scale import model_label
from analyses.common.plotting import Axes, numbered_figure, pyplot, save_figure
from analyses.figures.common.probed import LABELS, along, drawn_seed, layer, line
from poet.training.memory import PROJECTIONS
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Claim
from suite.context import Context
from suite.scale import Scale

POET = "poet-fs-1_2"
ROWS = {"adamw": "AdamW", "muon": "Muon", POET: "POET FS b=1/2"}
STEPS, MEASUREMENTS = 50_000, 10
#: Figures 17 to 19 and 20 to 22: where the second and the third group of blocks begin, as shares of the depth.
CUTS = {"adamw": (2 / 8, 5 / 8), POET: (3 / 8, 6 / 8)}
#: Summaries of a spectrum (..., r), descending, each with its marker and line style.
QUANTITIES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str, str]] = {
    "largest": (lambda s: s[..., 0], "o", "-"),
    "median": (lambda s: np.median(s, axis=-1), "s", "--"),
    "smallest": (lambda s: s[..., -1], "^", ":"),
}


def model(scale: Scale) -> str:
    """The model of these figures at a scale; the deepest one if none has three blocks."""
    depths = {name: settings.layers for name, settings in scale.settings.models.items()}
    deep = [name for name, depth in depths.items() if depth >= 3]
    return "60m" if "60m" in deep else next(iter(deep), max(depths, key=depths.get))


def measured_steps(steps: int, merge_every: int) -> tuple[int, ...]:
    """Step 0 and about ten multiples of ``merge_every``, evenly spread over the run."""
    return tuple(sorted({i * steps // MEASUREMENTS // merge_every * merge_every for i in range(MEASUREMENTS + 1)}))


def run(scale: Scale, row: str, seed: int) -> RunSpec:
    """The run of a row that the nine figures read. An untuned Muon trains embeddings, head and norms at AdamW's learning rate."""
    name = model(scale)
    steps = min(STEPS, scale.settings.models[name].steps)
    at = measured_steps(steps, scale.run(name, POET, seed).parameters["merge_every"])
    untuned = row == "muon" and not scale.learning_rates(name, row)
    overrides = {"lr": scale.run(name, "adamw", seed).parameters["lr"]} if untuned else {}
    return scale.run(name, row, seed, overrides=overrides, steps=steps, probes={"spectrum": at, "energy": at})


def runs(*rows: str) -> Callable[[Scale], list[RunSpec]]:
    """``Artifact.runs`` for some of :data:`ROWS`."""
    return lambda scale: [run(scale, row, seed) for row in rows for seed in scale.seeds]


def steps_of(context: Context) -> tuple[int, ...]:
    """The steps at which every run is measured, 0 among them."""
    return run(context.scale, POET, context.scale.seeds[0]).probes["spectrum"]


def measured(context: Context, row: str, probe: str) -> list[dict[str, np.ndarray]]:
    """The measurements of a probe on a row's runs, by seed: {matrix: (steps, ...)}."""
    return [along(context, run(context.scale, row, seed), probe) for seed in context.scale.seeds]


#: The group of blocks that a figure shows, in words.
GROUPS = ("its first blocks", "its middle blocks", "its last blocks")


def blocks(depth: int, row: str, group: int) -> range:
    """The blocks of group 0, 1 or 2 of a row: the split is in proportion to the paper's of eight blocks, and no group is empty."""
    first = max(1, round(CUTS[row][0] * depth))
    ends = (0, first, max(first + 1, round(CUTS[row][1] * depth)), depth)
    start = min(ends[group], depth - 1)
    return range(start, max(start + 1, ends[group + 1]))


def largest_change(spectra: np.ndarray) -> float:
    """Largest relative change of any number along a run from its start, (s, ...); NaN if the run diverged."""
    return float(np.abs(spectra / spectra[0] - 1).max())


def largest_growth(spectra: np.ndarray) -> float:
    """log(end / start) of the largest singular value, (s, r) -> a number; NaN if the run diverged."""
    return float(np.log(spectra[-1, 0] / spectra[0, 0]))


def growths(context: Context, row: str) -> list[np.ndarray]:
    """The :func:`largest_growth` of every matrix of a row's runs, in the order of their names, by seed."""
    return [np.array([largest_growth(found[name]) for name in sorted(found)]) for found in measured(context, row, "spectrum")]


def table(
    context: Context, row: str, matrices: Iterable[tuple[int, str]],
    published: dict[tuple[str, str, str], float] | None = None,
) -> pd.DataFrame:
    """Largest, median and smallest singular value by matrix and step, and the largest relative change over the run.

    ``published`` has values by (row, quantity, "start" or "end")."""
    steps, seeds, published, lines = steps_of(context), measured(context, row, "spectrum"), published or {}, []
    when = {0: "start", len(steps) - 1: "end"}
    for block, projection in matrices:
        spectra = [found[layer(block, projection)] for found in seeds]
        about = {"model": model(context.scale), "method": ROWS[row], "block": block, "matrix": LABELS[projection]}
        for quantity, (summary, _, _) in QUANTITIES.items():
            for i, step in enumerate(steps):
                printed = published.get((row, quantity, when.get(i, "")), np.nan)
                values = [summary(s)[i] for s in spectra]
                lines.append(line(context, values, "singular value", printed, **about, step=step, quantity=quantity))
        changes = [largest_change(s) for s in spectra]
        lines.append(line(context, changes, "relative", **about, step=steps[-1], quantity="largest relative change"))
    return pd.DataFrame(lines)


def draw(axis: Axes, steps: tuple[int, ...], spectra: np.ndarray) -> None:
    """Singular values (s, r) against the step: largest, median and smallest marked, thin lines between them."""
    between = np.unique(np.linspace(0, spectra.shape[1] - 1, 12).round().astype(int))
    axis.plot(steps, spectra[:, between], color="0.75", linewidth=0.7, zorder=1)
    for i, (quantity, (summary, marker, style)) in enumerate(QUANTITIES.items()):
        axis.plot(steps, summary(spectra), color=f"C{i}", marker=marker, linestyle=style, markersize=3.5, label=quantity)
    axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 4))
    axis.locator_params(nbins=4)


def about_runs(context: Context) -> str:
    """A sentence for the captions: the model, its depth and the length of the runs."""
    spec = run(context.scale, POET, context.scale.seeds[0])
    return f"Model: {model_label(context.scale, spec.model)}, {spec.architecture.layers} blocks, {spec.steps:,} steps."


def grid_artifact(number: int, row: str, group: int, claims: tuple[Claim, ...] = ()) -> Artifact:
    """Figures 17 to 22: the singular values of every matrix of a group of :func:`blocks`, one row of panels a block."""

    def build(context: Context) -> None:
        depth = context.scale.settings.models[model(context.scale)].layers
        chosen = blocks(depth, row, group)
        frame = table(context, row, [(block, p) for block in chosen for p in PROJECTIONS])
        steps, first = steps_of(context), measured(context, row, "spectrum")[0]
        figure, axes = pyplot().subplots(
            len(chosen), len(PROJECTIONS), figsize=(14, 1.1 + 2 * len(chosen)), sharex=True, squeeze=False
        )
        for cells, block in zip(axes, chosen, strict=True):
            for axis, projection in zip(cells, PROJECTIONS, strict=True):
                draw(axis, steps, first[layer(block, projection)])
                axis.set_ylim(bottom=0)
            cells[0].set_ylabel(f"block {block}\nsingular value")
        for axis, projection in zip(axes[0], PROJECTIONS, strict=True):
            axis.set_title(LABELS[projection])
        for axis in axes[-1]:
            axis.set_xlabel("step")
        name = model_label(context.scale, model(context.scale))
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper center", ncol=3, frameon=False, title=name)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.45 / figure.get_figheight()))
        shown = f"Blocks {chosen[0]} to {chosen[-1]}." if len(chosen) > 1 else f"Block {chosen[0]}."
        note = f"{shown} Thin lines: values in between. {about_runs(context)} {drawn_seed(context)}"
        save_figure(figure, frame, context, artifact, note)

    artifact = numbered_figure(
        number, f"Singular values of the weight matrices along training with {ROWS[row]}, {GROUPS[group]}.",
        runs=runs(row), build=build, claims=claims,
    )
    return artifact
