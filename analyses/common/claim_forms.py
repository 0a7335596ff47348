"""Forms that many claims have, each with its rule in words: an ordering, a printed order, a printed perplexity."""

import math
from collections.abc import Callable, Sequence

from analyses.common.evidence import largest_difference, over_seeds, perplexities
from poet.training.spec import RunSpec
from suite.claim import NEGATIVE, POSITIVE, Claim, Confounder, Evidence
from suite.context import Context
from suite.scale import Scale
from suite.statistics import CONFIDENCE

#: Two groups of runs that a claim compares, each by seed: first the group that should end lower, then the other one.
Pair = tuple[Sequence[RunSpec], Sequence[RunSpec]]
#: A printed perplexity counts as reached within this share of it. The paper gives no spread over seeds.
TOLERANCE = 0.02


def ordering(
    *, key: str, place: str, says: str, differences: str, pairs: Callable[[Scale], Sequence[Pair]],
    models: Sequence[str] = (), confounders: Sequence[Confounder] = (),
) -> Claim:
    """The claim that in every pair the first runs end with a lower perplexity than the second ones.

    ``differences`` names the two sides of the differences, for the rule's text. For the other arguments see :class:`Claim`."""
    return Claim(
        key=key, place=place, kind="ordering",
        says=says,
        rule=f"Final validation perplexities, {differences}, paired by seed. The mean difference (of several the largest, "
        "with an interval that allows for the choice) is below zero.",
        unit="perplexity", region=NEGATIVE, measure=lambda context: largest_difference(context, pairs(context.scale)),
        models=tuple(models), confounders=tuple(confounders),
    )


def too_few(rows: int) -> str:
    """A sentence for the rule of a rank correlation whose rows are too few to decide; empty if they are enough."""
    least = 2 / math.factorial(rows)
    return f" With {rows} rows the least two-sided p-value is {least:.2g}, so the claim cannot be more than undecided." if least > 1 - CONFIDENCE else ""


def same_order(*, key: str, place: str, measure: Callable[[Context], Evidence], models: Sequence[str] = (), more: str = "") -> Claim:
    """The claim that perplexities rank as printed; ``more`` is appended to its rule. For the other arguments see :class:`Claim`."""
    return Claim(
        key=key, place=place, kind="rank agreement",
        says="The order of the printed perplexities.",
        rule="Kendall's tau between printed and measured perplexities, mean over seeds; what did not converge comes last: above zero, "
        f"by a permutation of the rows.{more}",
        unit="", region=POSITIVE, measure=measure, models=tuple(models),
    )


def printed_perplexity(
    *, key: str, place: str, says: str, published: float, specs: Callable[[Scale], Sequence[RunSpec]], models: Sequence[str] = ()
) -> Claim:
    """The claim that runs reach a printed perplexity, which only the paper's models on its corpus can show."""

    def measure(context: Context) -> Evidence:
        runs = specs(context.scale)
        return over_seeds([value / published for value in perplexities(context, runs)], runs)

    return Claim(
        key=key, place=place, kind="number",
        says=says,
        rule=f"Final validation perplexity over the printed {published:.2f}, mean over seeds: within {TOLERANCE:.0%} of one.",
        unit="", region=(1 - TOLERANCE, 1 + TOLERANCE), measure=measure,
        paper_only="a perplexity itself belongs to the paper's models, corpus and tokenizer", models=tuple(models),
    )
