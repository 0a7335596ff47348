"""Table 12 as a picture: a panel for each data set and metric."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from analyses.common.plotting import MARKERS, bars

#: How far a measured number and the printed one stand from the middle of their method.
BESIDE = 0.12


def draw(frame: pd.DataFrame) -> Figure:
    """Scores by method: measured with error bars, printed beside them, and the lead baseline."""
    tasks, metrics, methods = (list(dict.fromkeys(frame[column])) for column in ("task", "metric", "method"))
    figure, axes = plt.subplots(len(tasks), len(metrics), figsize=(12.4, 6.0), squeeze=False)
    for row, task in zip(axes, tasks, strict=True):
        for axis, metric in zip(row, metrics, strict=True):
            part = frame[(frame.task == task) & (frame.metric == metric)].set_index("method").loc[methods]
            places = range(len(methods))
            axis.errorbar([p - BESIDE for p in places], part.measured, bars(part["std"]), marker=MARKERS[0], linestyle="", capsize=3, label="measured")
            if part.published.notna().any():
                axis.plot([p + BESIDE for p in places], part.published, marker=MARKERS[1], linestyle="", markerfacecolor="none", label="printed")
            axis.axhline(part.lead.iloc[0], color="0.3", linestyle=":", label="lead of the document")
            short = [method.partition(" (")[0] for method in methods]
            axis.set(title=f"{task}, {metric}", xticks=list(places), xticklabels=short, xlim=(-0.5, len(methods) - 0.5))
        row[0].set_ylabel("ROUGE")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure
