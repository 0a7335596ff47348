"""What the figures share: look and files."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no display is ever needed

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.figure import Figure

from poet.data.files import atomic_path

sns.set_theme(context="paper", style="whitegrid", palette="colorblind", font_scale=1.1)


def save_figure(figure: Figure, stem: Path) -> None:
    """Write ``<stem>.pdf`` and ``<stem>.png``, with no dates in them, and close the figure.

    Raises:
        DataError: the disk is full or the folder cannot be written.
    """
    for suffix, options in ((".pdf", {"metadata": {"CreationDate": None}}), (".png", {"dpi": 150, "metadata": {"Software": None}})):
        with atomic_path(stem.with_name(stem.name + suffix)) as temporary:
            figure.savefig(temporary, format=suffix[1:], **options)
    plt.close(figure)
