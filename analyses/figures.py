"""What the figures share: look and files."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no display is ever needed

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.figure import Figure

sns.set_theme(context="paper", style="whitegrid", palette="colorblind", font_scale=1.1)


def save_figure(figure: Figure, stem: Path) -> None:
    """Write ``<stem>.pdf`` and ``<stem>.png``, with no dates in them, and close the figure."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_name(stem.name + ".pdf"), metadata={"CreationDate": None})
    figure.savefig(stem.with_name(stem.name + ".png"), dpi=150, metadata={"Software": None})
    plt.close(figure)
