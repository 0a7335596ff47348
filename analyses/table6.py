"""Table 6: how often R and P are merged and reinitialized.

POET-FS with b = 1/2 on the 60M model, T_m from 5 to 1600 steps. The rule for shorter training: where the longest period,
1600 steps, fits into training, the printed T_m are used as they are. Where it does not, all are divided by 5, the largest
number that divides them all: their ratios stay the paper's, and the shortest becomes a single step. A period that is
still longer than training merges never; the column ``merges`` says how often each run merged.
"""

from __future__ import annotations

import math

import pandas as pd

from analyses.ablation import perplexity_table, write_table
from analyses.artifact import Artifact, Context
from analyses.published import read_published
from analyses.scale import Scale
from poet.training.spec import RunSpec

MODEL, ROW = "60m", "poet-fs-1_2"


def periods(steps: int) -> dict[str, int]:
    """T_m that a training of ``steps`` uses, by the printed one; see the rule above."""
    printed = [int(period) for period in read_published("table6").merge_every]
    divisor = 1 if max(printed) <= steps else math.gcd(*printed)
    return {str(period): period // divisor for period in printed}


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each printed T_m, by seed."""
    used = periods(scale.settings["models"][MODEL]["steps"])
    return {
        label: [scale.run(MODEL, ROW, seed, overrides={"merge_every": period}) for seed in scale.seeds]
        for label, period in used.items()
    }


def table(context: Context) -> pd.DataFrame:
    """One line for each printed T_m."""
    cells = specs(context.scale)
    frame = perplexity_table(context, "table6", cells).rename(columns={"merge_every": "merge_every_published"})
    used = [cells[label][0].parameters["merge_every"] for label in frame.merge_every_published]
    merges = [cells[label][0].steps // period for label, period in zip(frame.merge_every_published, used, strict=True)]
    frame.insert(1, "merge_every_used", used)
    frame.insert(2, "merges", merges)
    return frame


def build(context: Context) -> None:
    down = {"merge_every_published": "T_m, published", "merge_every_used": "T_m, used", "merges": "merges"}
    write_table(context, ARTIFACT, table(context), down)


ARTIFACT = Artifact(
    label="Table 6",
    caption="Validation perplexity of POET-FS (b=1/2) on LLaMA 60M for different merge periods T_m.",
    outputs=("table6.csv", "table6.md"),
    runs=lambda scale: [spec for by_seed in specs(scale).values() for spec in by_seed],
    build=build,
    models=(MODEL,),
)
