"""The paper's theoretical statements, each measured against its printed formula.

- :mod:`analyses.theory.approximation`: Lemma 1, its proof made constructive (:mod:`analyses.theory.lemma1`), and its heuristic.
- :mod:`analyses.theory.random_matrices`: mean and variance of vector probing, limits of the singular values.
- :mod:`analyses.theory.invariance`: moments of R W P, norms of its neurons, its hyperspherical energy.
- :mod:`analyses.theory.claims`: the claims that rest on these lines, and two more.

One line for each statement and setting. ``published`` is what the printed formula gives, or a printed bound, with
``relation`` for how the measurement should stand to it; ``derived`` is what a derivation gives where the print is wrong,
loose or silent, and the same number elsewhere. The rule for ``verdict`` (of the print) and ``derived_verdict`` is in
:mod:`analyses.theory.statements`; the modules above state their exceptions to it. No training: the same at every scale.
"""

import numpy as np
import pandas as pd

from analyses.common.plotting import Axes, Figure, figure_outputs, pyplot, save_figure
from analyses.theory import approximation, invariance, random_matrices
from analyses.theory.claims import CLAIMS
from analyses.theory.statements import numbers
from suite.artifact import Artifact
from suite.context import Context


def table() -> pd.DataFrame:
    """Every line: on the lemma, then on random matrices, then on the law of R W P."""
    return pd.DataFrame([*approximation.lines(), *random_matrices.lines(), *invariance.lines()])


def errors(part: pd.DataFrame) -> np.ndarray:
    """Lengths of the error bars, (2, lines)."""
    return np.maximum(0, np.stack([part.measured - part.low, part.high - part.measured]))


def draw_counts(axis: Axes, frame: pd.DataFrame) -> None:
    """Primitives that the construction needs at b = m/4, between the printed counts."""
    needed = numbers(frame[frame.statement == approximation.NEEDED], "m", "b")
    needed = needed[needed.m == 4 * needed.b].sort_values("m")
    blocks = needed.setting.str.contains("block")
    against_lemma = needed.quantity.str.contains("lemma")
    fully = needed[~blocks & against_lemma]
    m = fully.m.to_numpy()
    axis.plot(m, fully.published, "k-", label="allowed by Lemma 1, ~ m ln(m) (m/b)²")
    axis.plot(m, fully.derived, "C0--", label="exact means")
    axis.errorbar(m, fully.measured, errors(fully), fmt="o", color="C0", label="fully stochastic, measured")
    part = needed[blocks & against_lemma]
    axis.errorbar(part.m, part.measured, errors(part), fmt="s", color="C1", label="block-stochastic, measured")
    axis.plot(part.m, part.derived, "C1--")
    axis.plot(m, fully.published / m, "k-.", label="allowed by the heuristic, ~ ln(m) (m/b)²")
    axis.plot(m, needed[~blocks & ~against_lemma].published, "k:", label="least: parameters of R / of a primitive")
    axis.set(xscale="log", yscale="log", xlabel="m (b = m/4)", ylabel="primitives", title="Lemma 1: primitives needed")
    axis.set_xticks(m, [f"{size:g}" for size in m])
    axis.minorticks_off()


def draw_failures(axis: Axes, frame: pd.DataFrame) -> None:
    """Failures at alpha = 3 by shape, against the printed bound 1/m."""
    windows = numbers(frame[frame.statement == approximation.WINDOWS], "m", "b").sort_values(["b", "m"])
    adaptive = frame[frame.statement == approximation.ENOUGH].set_index("setting").reindex(windows.setting)
    x = np.arange(len(windows))
    axis.hlines(windows.published, x - 0.4, x + 0.4, colors="k", label="printed bound, 1/m")
    axis.errorbar(x - 0.1, windows.measured, errors(windows), fmt="o", color="C0", label="proof's windows, measured")
    axis.plot(x - 0.1, windows.derived, "_", color="C0", markersize=16, label="proof's windows, exact")
    axis.plot(x + 0.2, adaptive.high, "v", color="C2", label="columns as long as needed (three shapes tried): at most")
    labels = [f"m={m:g}\nb={b:g}" for m, b in zip(windows.m, windows.b, strict=True)]
    axis.set_xticks(x, labels, fontsize="small")
    axis.set(yscale="log", ylim=(2e-3, 1.5), ylabel="share of trials that fail", title="Lemma 1: failures at α = 3")


def draw_variance(axis: Axes, frame: pd.DataFrame) -> None:
    """Variance of v'Rv for Cayley maps R, from the identity to far from it."""
    part = frame[(frame.statement == random_matrices.VARIANCE) & frame.setting.str.contains("cayley")]
    part = numbers(part, "Tr(R)/m").sort_values("Tr(R)/m")
    x = part["Tr(R)/m"]
    axis.plot(x, part.published, "kX-", label="printed: +2 Tr(R)²/m")
    axis.plot(x, part.derived, "C0--", label="derived: −2 Tr(R)²/m")
    axis.errorbar(x, part.measured, errors(part), fmt="o", color="C0", label="measured")
    axis.set(xlabel="Tr(R)/m (1 is the identity)", ylabel="Var(vᵀRv)", title="Vector probing, m = 64")


def draw(frame: pd.DataFrame) -> Figure:
    """Three panels: how many primitives, how often they fail, and the variance of vector probing."""
    figure, axes = pyplot().subplots(1, 3, figsize=(14, 5.8))
    for axis, panel in zip(axes, (draw_counts, draw_failures, draw_variance), strict=True):
        panel(axis, frame)
        axis.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.15), frameon=False)
    figure.tight_layout()
    return figure


def findings(frame: pd.DataFrame) -> str:
    """A sentence with the numbers of confirmed and refuted statements."""
    counts, derived = frame.verdict.value_counts(), frame.derived_verdict.value_counts()
    return (
        f"Of {int(counts.drop('', errors='ignore').sum())} values and bounds that are printed or follow from what is, {counts.get('confirmed', 0)} are "
        f"confirmed, {counts.get('refuted', 0)} refuted; of {len(frame)} derived ones "
        f"{derived.get('confirmed', 0)} and {derived.get('refuted', 0)}."
    )


def build(context: Context) -> None:
    frame = table()
    save_figure(draw(frame), frame, context, ARTIFACT, "Bars: four standard errors, or as much confidence.", findings(frame))


ARTIFACT = Artifact(
    label="Theory",
    caption="Statements of Section 4 and Appendices A to D, measured.",
    outputs=("theory.csv", *figure_outputs("theory")),
    build=build, claims=CLAIMS,
)
