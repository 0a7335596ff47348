"""Table 4 as a picture: a panel for each task."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analyses.common.plotting import MARKERS, bars

#: How far the two pretrained models of a finetuning method, and a printed number from a measured one, stand apart.
APART, BESIDE = 0.24, 0.11


def draw(frame: pd.DataFrame) -> Figure:
    """Scores by finetuning method and pretrained model at one rate: measured with error bars, and printed beside them."""
    tasks, methods, models = (list(dict.fromkeys(frame[column])) for column in ("task", "finetuning", "pretraining"))
    figure, axes = plt.subplots(2, 4, figsize=(12.4, 6.2))
    for axis, task in zip(axes.flat, tasks, strict=True):
        part = frame[frame.task == task]
        for number, model in enumerate(models):
            own = part[part.pretraining == model].set_index("finetuning").loc[methods]
            place = np.arange(len(methods)) + (number - 0.5) * APART
            color = f"C{number}"
            axis.errorbar(place - BESIDE / 2, own.measured, bars(own["std"]), marker=MARKERS[number], linestyle="", capsize=3, color=color, label=f"{model}, measured")
            axis.plot(place + BESIDE / 2, own.published, marker=MARKERS[number], linestyle="", color=color, markerfacecolor="none", label=f"{model}, printed")
        axis.axhline(part.without_learning.iloc[0], color="0.3", linestyle=":", label="one answer for all")
        axis.set(title=f"{task} ({part.data.iloc[0]})", xticks=range(len(methods)), xticklabels=methods, xlim=(-0.5, len(methods) - 0.5))
    for axis in axes[:, 0]:
        axis.set_ylabel("score")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure
