"""What the figures share: look, caption, files."""

import textwrap
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display is ever needed

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from analyses.common.layout import write_csv
from poet.system.files import atomic_path
from suite.artifact import Artifact
from suite.context import Context
from suite.recorded.marking import caption

sns.set_theme(context="paper", style="whitegrid", palette="colorblind", font_scale=1.1)

#: Markers and lines in the order of the palette, so that series are told apart without colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 1, 2)))
#: Characters of a caption's line for each inch of the figure's width.
CAPTION_CHARACTERS = 15


def numbered_figure(number: int, caption: str, **attributes: Any) -> Artifact:
    """A figure of the paper, with its CSV, PNG and PDF; ``attributes`` are further ones of :class:`Artifact`."""
    outputs = (f"figure{number}.csv", f"figures/figure{number}.png", f"figures/figure{number}.pdf")
    return Artifact(label=f"Figure {number}", caption=caption, outputs=outputs, **attributes)


def save_figure(figure: Figure, frame: pd.DataFrame, context: Context, artifact: Artifact, note: str = "") -> None:
    """Write an artifact's CSV, and its figure with label, caption, scale and a note below as PDF and PNG; close it.

    Raises:
        DiskError: the disk is full or the folder cannot be written.
    """
    write_csv(frame, context.results / artifact.outputs[0])
    lines = textwrap.fill(caption(context, artifact, note), int(CAPTION_CHARACTERS * figure.get_figwidth()))
    figure.text(0.5, -0.01, lines, ha="center", va="top", fontsize="small")
    for legend in figure.legends:
        if legend.get_bbox_to_anchor() is figure.bbox:  # would follow the tight frame, onto the caption
            legend.set_bbox_to_anchor((0, 0, 1, 1), transform=figure.transFigure)
    # No dates in the files: the same records give the same bytes.
    for suffix, options in ((".pdf", {"metadata": {"CreationDate": None}}), (".png", {"dpi": 150, "metadata": {"Software": None}})):
        (name,) = (output for output in artifact.outputs if output.endswith(suffix))
        with atomic_path(context.results / name) as temporary:
            figure.savefig(temporary, format=suffix[1:], bbox_inches="tight", pad_inches=0.15, **options)
    plt.close(figure)


def plain_logarithmic(axis: Axis) -> None:
    """A few round numbers, written out, on a logarithmic axis that spans less than a decade."""
    axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
