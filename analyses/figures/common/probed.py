"""Shared by artifacts built from probes: names of matrices, panels of a figure, measurements by step, lines of a table."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from analyses.common.layout import measured_columns
from analyses.common.plotting import Axes, Figure, pyplot
from poet.training.memory import PROJECTIONS
from poet.training.spec import RunSpec
from suite.context import Context

#: Matrix types of a block as panels and legends call them.
LABELS = {name: name.removesuffix("_proj") for name in PROJECTIONS}


def layer(block: int, projection: str) -> str:
    """The name of a block's matrix: ``layer(0, "q_proj") == "model.layers.0.self_attn.q_proj"``."""
    part = "self_attn" if projection in PROJECTIONS[:4] else "mlp"
    return f"model.layers.{block}.{part}.{projection}"


def along(context: Context, spec: RunSpec, probe: str) -> dict[str, np.ndarray]:
    """The measurements of a probe along a run, by matrix: (requested steps, ...); NaN at steps that a diverged run did not reach.

    Raises:
        RunError: there is no record of this spec, or its probes cannot be read.
    """
    found, asked = context.probes(spec), spec.probes[probe]
    reached = np.searchsorted(asked, found[f"{probe}/steps"])
    laid_out = {}
    for key, values in found.items():
        kind, _, name = key.partition("/")
        if kind == probe and name != "steps":
            laid_out[name] = np.full((len(asked), *values.shape[1:]), math.nan)
            laid_out[name][reached] = values
    return laid_out


def matrix_panels(quantity: str) -> tuple[Figure, dict[str, Axes], Axes]:
    """An empty figure for a quantity against the step: (figure, panel of each projection, blank corner for the legend)."""
    figure, axes = pyplot().subplots(2, 4, figsize=(11, 5), sharex=True, sharey=True)
    *panels, corner = axes.flat
    for axis, matrix in zip(panels, LABELS.values(), strict=True):
        axis.set_title(matrix)
    for axis in (*axes[1, :3], axes[0, 3]):
        axis.set_xlabel("step")
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel(quantity)
    corner.axis("off")
    return figure, dict(zip(LABELS, panels, strict=True)), corner


def line(
    context: Context, values: Sequence[float], unit: str, published: float | tuple[float, float] = math.nan, **varying: Any
) -> dict[str, Any]:
    """One line of a tidy table; ``varying`` are its identifying columns, ``values`` are by seed, NaN where the run diverged.

    If ``published`` is a range, the column of that name has its middle."""
    columns = {"published": published}
    if isinstance(published, tuple):
        columns = {"published": sum(published) / 2, "published_low": published[0], "published_high": published[1]}
    return {
        **varying, **columns, **measured_columns([float(v) for v in values]), "unit": unit, "scale": context.scale.name,
        "corpus": context.scale.corpus,
    }


def drawn_seed(context: Context) -> str:
    """Which seed a picture of single runs shows, for its caption."""
    n = len(context.scale.seeds)
    return f"Drawn: seed {context.scale.seeds[0]}, n = 1" + (f" of {n}; the table has all." if n > 1 else ".")
