"""Vector probing of R and P along training: what Figures 2 and 11 to 14 share.

The paper (Appendices "Delving into POET's Three Training Phases" and "Results of Vector Probing"): a 60M model, POET-FS with
b = 1, so that nothing is resampled and R, P are never merged, at half the learning rate of b = 1/2 (5e-4 against 1e-3).
A random unit vector v is fixed for each matrix, and v'Rv followed from 1 downwards.

Definitions. v'Rv is called a cosine as in the paper; it is one if R is orthogonal, which the unmerged Cayley-Neumann map with
k = 3 is only as long as Q stays small (``orthogonality error`` in ``results/figure2.csv`` says how far it is from that).
For v uniform on the sphere, v'Rv has mean Tr(R)/m and, with S = (R + R')/2, variance

    2 (||S||_F^2 / m - Tr(R)^2 / m^2) / (m + 2) = (m + Tr(R^2) - 2 Tr(R)^2 / m) / (m (m + 2)) for orthogonal R.

The paper prints the last formula with a plus sign.

Where Cayley-Neumann ends. With q the eigenvalues of Q/i, the symmetric part of its k = 3 map has the eigenvalues
(1 - q^2)^2 and R R' has (1 - q^4)^2: as q nears 1 the map shrinks vectors to nothing, beyond 2^(1/4) it stretches them. If
the q of a large Q fill a semicircle of radius 1, Tr(R)/m = 5/8 and e_orth = 0.33: the middle of the paper's cone,
[0.60, 0.65]. The exact Cayley map has no such wall: a control with it tells whether the cone is one of learning or of the
approximation.
"""

import itertools

import numpy as np
import pandas as pd

from analyses.common.paper_scale import model_label
from analyses.common.plotting import LINES, MARKERS, numbered_figure, save_figure, sns
from analyses.figures.common.probed import LABELS, along, drawn_seed, layer, line, matrix_panels
from analyses.phases import Phases, find_phases
from poet.training.spec import Architecture, RunSpec
from suite.artifact import Artifact
from suite.claim import Claim
from suite.context import Context
from suite.scale import Scale

MODEL, ROW = "60m", "poet-fs-1_2"
MEASUREMENTS = 60
#: Where the paper's cosines converge to (Section 1), and the traces over their dimension (Appendix A.2).
CONE = (0.60, 0.65)
#: Places in what the probe ``rotations`` measures.
COSINE, TRACE, SQUARE = range(3)


def measured_steps(steps: int) -> tuple[int, ...]:
    """Step 0 to the last, about sixty of them, denser at the start."""
    return tuple(sorted({round(steps * (i / MEASUREMENTS) ** 1.5) for i in range(MEASUREMENTS + 1)}))


def run(scale: Scale, seed: int, exact: bool = False) -> RunSpec:
    """The run of Figures 2 and 11 to 14: whole rotations, never merged, half the rate of POET-FS b=1/2.

    ``exact`` asks for the control with the exact Cayley map."""
    in_force = scale.run(MODEL, ROW, seed)
    overrides = {"budget": 1.0, "merge_every": in_force.steps + 1, "poet_lr": in_force.parameters["poet_lr"] / 2}
    if exact:
        overrides["neumann_terms"] = None
    at = measured_steps(in_force.steps)
    return scale.run(MODEL, ROW, seed, overrides=overrides, probes={"rotations": at, "orthogonality": at})


def runs(scale: Scale) -> list[RunSpec]:
    return [run(scale, seed) for seed in scale.seeds]


def depth(scale: Scale) -> int:
    """Blocks of the model."""
    return scale.settings.models[MODEL].layers


def stacked(context: Context, spec: RunSpec, probe: str, side: str) -> dict[str, np.ndarray]:
    """{projection: (blocks, steps, ...)} of R or P."""
    found = along(context, spec, probe)
    return {p: np.stack([found[f"{layer(b, p)}.{side}"] for b in range(depth(context.scale))]) for p in LABELS}


def both_sides(context: Context, spec: RunSpec, probe: str) -> np.ndarray:
    """(matrices, steps, ...) of every R, by type and block, and then of every P."""
    return np.concatenate([a for side in "RP" for a in stacked(context, spec, probe, side).values()])


def rotations(context: Context) -> list[np.ndarray]:
    """What the runs' probes measured of every R and P, by seed: (matrices, steps, 3)."""
    return [both_sides(context, spec, "rotations") for spec in runs(context.scale)]


def phases_of(context: Context) -> list[Phases]:
    """The phases by seed."""
    at = np.array(runs(context.scale)[0].probes["rotations"])
    return [find_phases(at, found[..., COSINE]) for found in rotations(context)]


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
    # Of the trace the appendix says "generally in the range of [0.6, 0.65]"; the cosines were read off the figures.
    published = ((0.60, 0.66), CONE)[what]

    def build(context: Context) -> None:
        at = np.array(runs(context.scale)[0].probes["rotations"])
        found = [stacked(context, spec, "rotations", side) for spec in runs(context.scale)]
        lines = []
        for (p, matrix), block, (i, step) in itertools.product(LABELS.items(), range(depth(context.scale)), enumerate(at)):
            about = {"model": MODEL, "side": side, "block": block, "matrix": matrix, "step": step}
            printed = published if step == at[-1] else (np.nan, np.nan)
            lines.append(line(context, [f[p][block, i, what] for f in found], quantity, printed, **about))
        figure, panels, corner = matrix_panels(f"v'{side}v" if what == COSINE else f"Tr({side}) / dimension")
        colours = sns.color_palette("viridis", depth(context.scale))
        for p, axis in panels.items():
            axis.axhspan(*published, color="0.88", zorder=0)
            for block, values in enumerate(found[0][p][:, :, what]):
                marker, style = MARKERS[block % len(MARKERS)], LINES[block % len(LINES)]
                look = {"color": colours[block], "marker": marker, "linestyle": style, "label": f"block {block}"}
                axis.plot(at, values, **look, markersize=4, markevery=(block % 8, 8))
        handles, labels = axis.get_legend_handles_labels()
        corner.legend(handles, labels, loc="center", ncol=1 + (len(labels) > 4), frameon=False, title=model_label(context.scale, MODEL))
        figure.tight_layout()
        note = f"Model: {model_label(context.scale, MODEL)}. Grey: the range in which the paper's curves end, read off. {drawn_seed(context)}"
        save_figure(figure, pd.DataFrame(lines), context, artifact, note)

    artifact = numbered_figure(
        number, f"{('Vector probing', 'Trace')[what]} of every {side} of a 60M model.",
        runs=runs, build=build, models=(MODEL,), claims=claims,
    )
    return artifact
