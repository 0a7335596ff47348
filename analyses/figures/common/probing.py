"""Vector probing of R and P along training: what Figures 2 and 11 to 14 share.

The paper (Appendices "Delving into POET's Three Training Phases" and "Results of Vector Probing") trains a 60M model by POET-FS
with b = 1: no index set is resampled, and R and P are never merged. The learning rate is half that of b = 1/2 (5e-4 against
1e-3). A random unit vector v is fixed for each matrix, and v'Rv is measured along training, where it falls from 1.

Definitions. v'Rv is called a cosine, as in the paper; it is a cosine only if R is orthogonal. The unmerged Cayley-Neumann map
with k = 3 is nearly orthogonal only while Q stays small (``results/figure2.csv`` has its orthogonality error).
For v uniform on the sphere, v'Rv has mean Tr(R)/m and, with S = (R + R')/2, variance

    2 (||S||_F^2 / m - Tr(R)^2 / m^2) / (m + 2) = (m + Tr(R^2) - 2 Tr(R)^2 / m) / (m (m + 2)) for orthogonal R.

The paper prints the last formula with a plus sign.

Limits of Cayley-Neumann. With q the eigenvalues of Q/i, the symmetric part of the k = 3 map has the eigenvalues (1 - q^2)^2,
and R R' has (1 - q^4)^2. As q approaches 1 the map shrinks vectors to zero; beyond 2^(1/4) it stretches them. If the q of a
large Q follow the semicircle law of radius 1, e_orth = 0.33 and Tr(R)/m = 5/8, the middle of the paper's cone [0.60, 0.65].
The exact Cayley map has no such limit. A control that trains with it shows whether the cone comes from learning or from the
approximation.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from analyses.common.looks import shades
from analyses.common.paper_scale import model_label
from analyses.common.plotting import LINES, MARKERS, numbered_figure, save_figure
from analyses.figures.common.probed import LABELS, along, drawn_seed, layer, line, matrix_panels
from analyses.phases import Phases, drift, find_phases, length_of_second
from poet.training.spec import Architecture, RunSpec
from suite.artifact import Artifact
from suite.claim import Claim
from suite.context import Context
from suite.scale import Scale

MODEL, ROW = "60m", "poet-fs-1_2"
MEASUREMENTS = 60
#: The range to which the paper's cosines (Section 1) and traces over dimension (Appendix A.2) converge.
CONE = (0.60, 0.65)
#: Indices of the three numbers that the probe ``rotations`` measures.
COSINE, TRACE, SQUARE = range(3)


def measured_steps(steps: int) -> tuple[int, ...]:
    """About sixty steps from 0 to the last, denser at the start."""
    return tuple(sorted({round(steps * (i / MEASUREMENTS) ** 1.5) for i in range(MEASUREMENTS + 1)}))


def run(scale: Scale, seed: int, exact: bool = False) -> RunSpec:
    """The run of Figures 2 and 11 to 14: POET-FS with b = 1, never merged, at half the learning rate of b = 1/2.

    ``exact`` gives the control with the exact Cayley map."""
    in_force = scale.run(MODEL, ROW, seed)
    overrides = {"budget": 1.0, "merge_every": in_force.steps + 1, "poet_lr": in_force.parameters["poet_lr"] / 2}
    if exact:
        overrides["neumann_terms"] = None
    at = measured_steps(in_force.steps)
    return scale.run(MODEL, ROW, seed, overrides=overrides, probes={"rotations": at, "orthogonality": at})


def runs(scale: Scale) -> list[RunSpec]:
    return [run(scale, seed) for seed in scale.seeds]


def steps_of(context: Context) -> np.ndarray:
    """The steps at which every run is measured, (s,)."""
    return np.array(runs(context.scale)[0].probes["rotations"])


def depth(scale: Scale) -> int:
    """Number of blocks of the model."""
    return scale.settings.models[MODEL].layers


def stacked(context: Context, spec: RunSpec, probe: str, side: str) -> dict[str, np.ndarray]:
    """Measurements of a probe on R or on P, as ``side`` says: {projection: (blocks, steps, ...)}."""
    found = along(context, spec, probe)
    return {p: np.stack([found[f"{layer(b, p)}.{side}"] for b in range(depth(context.scale))]) for p in LABELS}


def both_sides(context: Context, spec: RunSpec, probe: str) -> np.ndarray:
    """Measurements of a probe on every R, by type and block, and then on every P: (matrices, steps, ...)."""
    return np.concatenate([a for side in "RP" for a in stacked(context, spec, probe, side).values()])


def rotations(context: Context) -> list[np.ndarray]:
    """Measurements of the probe ``rotations`` on every R and P, by seed: (matrices, steps, 3)."""
    return [both_sides(context, spec, "rotations") for spec in runs(context.scale)]


def phases_of(context: Context) -> list[Phases]:
    """The phases of every run, by seed."""
    return [find_phases(steps_of(context), found[..., COSINE]) for found in rotations(context)]


def second_lengths(
    context: Context, parts: Callable[[np.ndarray], Sequence[np.ndarray]] = lambda cosines: [cosines]
) -> list[np.ndarray]:
    """The length of phase II in each part of a run's cosines (matrices, s), by seed; see :func:`length_of_second`."""
    at = steps_of(context)
    null = drift(at, runs(context.scale)[0])
    by_seed = [parts(found[..., COSINE]) for found in rotations(context)]
    return [np.array([length_of_second(at, part, null) for part in own]) for own in by_seed]


def dimensions(architecture: Architecture) -> np.ndarray:
    """m of every R and n of every P, in the order of :func:`both_sides`."""
    d, f = architecture.hidden_size, architecture.intermediate_size
    inputs, outputs = [d] * 6 + [f], [d] * 4 + [f, f, d]
    return np.repeat([*inputs, *outputs], architecture.layers)


def predicted_deviation(trace: np.ndarray, square: np.ndarray, m: np.ndarray, sign: int = -1) -> np.ndarray:
    """Standard deviation of v'Rv over v, from Tr(R)/m, ||S||_F^2/m and m; ``sign=1`` is the paper's misprint."""
    return np.sqrt(np.clip(2 * (square + sign * trace**2) / (m + 2), 0, None))


def grid_artifact(number: int, side: str, what: int, claims: tuple[Claim, ...] = ()) -> Artifact:
    """Figures 11 to 14: v'Rv (COSINE) or the trace of every R or P, panels by matrix type, lines by block."""
    quantity = ("cosine", "trace / dimension")[what]
    published, whence = (((0.60, 0.66), "in which the paper's curves end, read off"), (CONE, "that the paper's text gives for the end"))[what]

    def build(context: Context) -> None:
        at = steps_of(context)
        found = [stacked(context, spec, "rotations", side) for spec in runs(context.scale)]
        lines = []
        for (p, matrix), block, (i, step) in itertools.product(LABELS.items(), range(depth(context.scale)), enumerate(at)):
            about = {"model": MODEL, "side": side, "block": block, "matrix": matrix, "step": step}
            printed = published if step == at[-1] else (np.nan, np.nan)
            lines.append(line(context, [f[p][block, i, what] for f in found], quantity, printed, **about))
        figure, panels, corner = matrix_panels(f"v'{side}v" if what == COSINE else f"Tr({side}) / dimension")
        colours = shades("viridis", depth(context.scale))
        for p, axis in panels.items():
            axis.axhspan(*published, color="0.88", zorder=0)
            for block, values in enumerate(found[0][p][:, :, what]):
                marker, style = MARKERS[block % len(MARKERS)], LINES[block % len(LINES)]
                look = {"color": colours[block], "marker": marker, "linestyle": style, "label": f"block {block}"}
                axis.plot(at, values, **look, markersize=4, markevery=(block % 8, 8))
        handles, labels = axis.get_legend_handles_labels()
        corner.legend(handles, labels, loc="center", ncol=1 + (len(labels) > 4), frameon=False, title=model_label(context.scale, MODEL))
        figure.tight_layout()
        note = f"Model: {model_label(context.scale, MODEL)}. Grey: the range {whence}. {drawn_seed(context)}"
        save_figure(figure, pd.DataFrame(lines), context, artifact, note)

    artifact = numbered_figure(
        number, f"{('Vector probing', 'Trace')[what]} of every {side} of a 60M model.",
        runs=runs, build=build, models=(MODEL,), claims=claims,
    )
    return artifact
