"""What the paper says about Table 12."""

import itertools

from analyses.common.learned import LEARNED, all_lower
from analyses.tables.table12.cells import LABELS, METHODS, NAMES, cells
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context

#: No two scores differ by more, in percent.
GREATEST = 100.0
POET = "POET (FS, b=1/2)"
#: The metrics that the paper names.
NAMED = ("rouge1", "rouge2", "rougeL")


def _others_minus_poet(context: Context) -> Evidence:
    """How much higher another method's score is than POET's, where that is most, over cells of which one has learned."""
    frame, specs, comparisons = context.table("table12").set_index(["method", "task", "metric"]), cells(context.scale), []
    for other, task, metric in itertools.product((name for name in METHODS if name != POET), NAMES, NAMED):
        ours, theirs = ([context.record(spec)["rouge"][metric] for spec in specs[name, task]] for name in (POET, other))
        able = "yes" in {frame.loc[(name, task, LABELS[metric]), "learned"] for name in (POET, other)}
        comparisons.append([b - a for a, b in zip(ours, theirs, strict=True)] if able else None)
    return all_lower(comparisons, [spec for by_seed in specs.values() for spec in by_seed], GREATEST, "neither method has learned")


CLAIMS = (
    Claim(
        key="table12-poet-best", place="Appendix L, Table 12", kind="finetuning",
        says="POET outperforms full finetuning and the parameter-efficient methods on summaries, by ROUGE-1, -2 and -L on both data sets.",
        rule="ROUGE of each other method minus that of POET, paired by seed of finetuning, wherever one of the two has learned (its mean over two seeds "
        f"or more is above the lead by more than {LEARNED:g} standard deviations, of seeds and of summaries together): the largest mean difference is below zero.",
        unit="ROUGE", region=NEGATIVE, measure=_others_minus_poet,
    ),
)
