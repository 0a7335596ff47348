"""Table 6: how often R and P are merged and reinitialized.

POET-FS with b = 1/2 on the 60M model, T_m from 5 to 1600 steps. Shorter training has shorter periods: the scale's own T_m takes the
place of the printed 400, and the others keep their ratios to it, so that a run merges as often as the paper's. If the shortest
period would be less than half a step, all are divided by 5 instead, their greatest common divisor, and the shortest is one step.
With a period longer than training there is no merge; the column ``merges`` has the number of merges of each run. Claims name the
printed T_m.
"""

import itertools
import math

import pandas as pd

from analyses.common.ablation import ablation, every_pair, perplexity_table, printed_order, settings
from analyses.common.claim_forms import ordering
from analyses.common.published import read_published
from poet.training.spec import RunSpec
from suite.context import Context
from suite.scale import Scale

MODEL, ROW = "60m", "poet-fs-1_2"
#: T_m of the paper's other experiments (Section 5.3).
PRINTED_DEFAULT = 400


def periods(own: int) -> dict[str, int]:
    """The T_m that a scale with the default T_m ``own`` uses, by the printed T_m; see the top of this file."""
    printed = [int(period) for period in read_published("table6").merge_every]
    share = own / PRINTED_DEFAULT
    if 2 * min(printed) * share < 1:
        share = 1 / math.gcd(*printed)
    return {str(period): max(1, round(period * share)) for period in printed}


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each printed T_m, by seed."""
    used = periods(scale.run(MODEL, ROW, scale.seeds[0]).parameters["merge_every"])
    return settings(scale, MODEL, ROW, {label: {"merge_every": period} for label, period in used.items()})


def table(context: Context) -> pd.DataFrame:
    """One line for each printed T_m."""
    cells = specs(context.scale)
    frame = perplexity_table(context, "table6", cells).rename(columns={"merge_every": "merge_every_published"})
    first = [cells[label][0] for label in frame.merge_every_published]
    frame.insert(1, "merge_every_used", [spec.parameters["merge_every"] for spec in first])
    frame.insert(2, "merges", [spec.steps // spec.parameters["merge_every"] for spec in first])
    return frame


#: In every rule.
IN_PROPORTION = " (trained: periods in proportion to the run, in column `merge_every_used`)"
CLAIMS = (
    ordering(
        key="table6-400-best", place="Table 6, in bold",
        says="T_m = 400 gives the lowest perplexity.",
        differences=f"T_m = 400 minus each other T_m{IN_PROPORTION}",
        pairs=lambda scale: every_pair(specs(scale), ("400",), ("5", "25", "50", "200", "1600")),
    ),
    ordering(
        key="table6-200-and-400-well", place="Section 5.3",
        says="Both T_m = 200 and T_m = 400 perform well: better than shorter and longer periods.",
        differences=f"T_m = 200 and T_m = 400, each minus each of 5, 25, 50 and 1600{IN_PROPORTION}",
        pairs=lambda scale: every_pair(specs(scale), ("200", "400"), ("5", "25", "50", "1600")),
    ),
    ordering(
        key="table6-falls-to-400", place="Table 6",
        says="Merging often is costly: perplexity falls with every longer period from T_m = 5 to 400.",
        differences=f"each T_m from 25 to 400 minus the next shorter one{IN_PROPORTION}",
        pairs=lambda scale: [(b, a) for a, b in itertools.pairwise(specs(scale)[k] for k in ("5", "25", "50", "200", "400"))],
    ),
    ordering(
        key="table6-rises-after-400", place="Table 6",
        says="Merging too seldom is costly too: perplexity is higher at T_m = 1600 than at 400.",
        differences=f"T_m = 400 minus T_m = 1600{IN_PROPORTION}",
        pairs=lambda scale: every_pair(specs(scale), ("400",), ("1600",)),
    ),
    printed_order(6, specs),
)
ARTIFACT = ablation(
    6, "Validation perplexity of POET-FS (b=1/2) on LLaMA 60M for different merge periods T_m.", MODEL, specs,
    {"merge_every_published": "T_m, published", "merge_every_used": "T_m, used", "merges": "merges"}, CLAIMS, table=table,
)
