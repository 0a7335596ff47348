"""What the figures share: look, caption, files."""

import functools
import itertools
import math
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.ticker import Locator, MaxNLocator, NullLocator

from analyses.common.layout import write_csv
from poet.system.files import atomic_path, write_text
from suite.artifact import Artifact
from suite.context import Context
from suite.recorded.marking import caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
else:  # only annotations use these names, and loading them would cost each command most of a second; see pyplot()
    Axes = Axis = Figure = Any

#: Markers and lines in the order of the palette, so that series are told apart without colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 1, 2)))


@functools.cache
def pyplot() -> ModuleType:
    """``matplotlib.pyplot`` with the look of all figures. It is imported at the first figure: each command finds all artifacts, and starts a second sooner without it."""
    import matplotlib

    matplotlib.use("Agg")  # no display is ever needed
    import matplotlib.pyplot
    import seaborn

    seaborn.set_theme(
        context="paper", style="whitegrid", palette="colorblind", font_scale=1.1,
        rc={"figure.constrained_layout.w_pad": 0.1, "figure.constrained_layout.h_pad": 0.1},  # inches, as tight_layout has it
    )
    return matplotlib.pyplot


def figure_outputs(name: str) -> tuple[str, ...]:
    """The files of a figure, below the results folder: the picture twice, and its caption as text."""
    return tuple(f"figures/{name}.{suffix}" for suffix in ("png", "pdf", "txt"))


def numbered_figure(number: int, caption: str, **attributes: Any) -> Artifact:
    """A figure of the paper, with its CSV and :func:`figure_outputs`; ``attributes`` are further ones of :class:`Artifact`."""
    name = f"figure{number}"
    return Artifact(label=f"Figure {number}", caption=caption, outputs=(f"{name}.csv", *figure_outputs(name)), **attributes)


def save_figure(figure: Figure, frame: pd.DataFrame, context: Context, artifact: Artifact, note: str = "", findings: str = "", page: str = "") -> None:
    """Write an artifact's CSV, its figure as PDF and PNG, its caption as text beside them, and its Markdown if it has any; close the figure.

    Args:
        note: sentences for the caption, such as what the marks mean. The caption also has the artifact's label, its caption and the scale.
        findings: sentences on the results, a paragraph of their own below the caption.
        page: the Markdown, for tables that have a figure as well.

    Raises:
        DiskError: the disk is full or the folder cannot be written.
    """
    write_csv(frame, context.results / artifact.outputs[0])
    of_suffix = {output.rpartition(".")[2]: context.results / output for output in artifact.outputs}
    write_text(of_suffix["txt"], "\n\n".join(filter(None, (caption(context, artifact, note), findings))) + "\n")
    if page:
        write_text(of_suffix["md"], page)
    # No dates in the files: the same records give the same bytes.
    for suffix, options in (("pdf", {"metadata": {"CreationDate": None}}), ("png", {"dpi": 150, "metadata": {"Software": None}})):
        with atomic_path(of_suffix[suffix]) as temporary:
            figure.savefig(temporary, format=suffix, **options)
    pyplot().close(figure)


def bars(std: pd.Series) -> pd.Series | None:
    """Half-lengths of error bars for ``errorbar``; None if no point has one (a single seed)."""
    return std if std.notna().any() else None


def spread_note(context: Context, marks: str = "Bars") -> str:
    """A sentence for the caption: what the error bars are, or that one seed has none."""
    return spread_over(len(context.scale.seeds), "seeds", marks)


def spread_over(n: int, seeds: str, marks: str = "Bars") -> str:
    """:func:`spread_note` for a number of seeds, or of what ``seeds`` names."""
    return f"{marks}: one standard deviation either side, n = {n} {seeds}." if n > 1 else "n = 1: no error bars."


class RoundLogarithmic(Locator):
    """Round numbers on a logarithmic axis, as many as fit without crowding, and ``most`` at most.

    Steps of equal size crowd at the upper end of the axis. Steps of equal ratio give few numbers on less than a decade. The locator tries
    sets of both kinds. It takes the largest set whose neighbours are at least two thirds of an even share apart.
    """

    #: First digits, roundest first.
    DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))

    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self) -> np.ndarray:
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> np.ndarray:
        """The numbers between two ends, which are positive."""
        low, high = sorted((vmin, vmax))
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [np.array([digit * 10.0**decade for decade, digit in itertools.product(decades, digits)]) for digits in self.DIGITS]
        found += [np.asarray(MaxNLocator(n, steps=[1, 2, 5, 10]).tick_values(low, high)) for n in range(1, 2 * self.most)]
        inside = [numbers[(numbers >= low) & (numbers <= high)] for numbers in found]
        apart = 2 / 3 * math.log(high / low) / self.most
        fitting = [n for n in inside if len(n) <= self.most and (np.diff(np.log(n)) >= apart).all()]
        return max(fitting, key=len)


def plain_logarithmic(axis: Axis, most: int = 7) -> None:
    """Round numbers, written out, on a logarithmic axis; see :class:`RoundLogarithmic`."""
    axis.set_major_locator(RoundLogarithmic(most))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
