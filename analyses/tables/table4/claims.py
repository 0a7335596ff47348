"""What the paper says about Table 4, at each rate."""

import itertools
import statistics
from collections.abc import Iterable
from dataclasses import replace

from analyses.common.learned import all_lower
from analyses.tables.table4.cells import METHODS, NAMES, PRINTED_RATE, TUNED, cells
from suite.claim import NEGATIVE, Claim, Evidence
from suite.context import Context
from suite.judging import NOTHING

#: No two scores differ by more: correlations lie between -1 and 1.
GREATEST = 2.0


def _higher(context: Context, rate: str, pairs: Iterable[tuple[tuple[str, str, str], tuple[str, str, str]]], of_models: bool = False) -> Evidence:
    """Whether the first of each pair of cells has the higher metric at a rate, by the pair where it has it least.

    ``of_models``: the pairs are of two pretrained models, one run of each, so their difference is one number however often both are finetuned.
    """
    frame, specs, runs, comparisons = context.table("table4"), cells(context.scale), [], []
    if rate not in set(frame.rate):
        return replace(NOTHING, note="no rates tuned alike")
    frame = frame[frame.rate == rate].set_index(["finetuning", "pretraining", "task"])
    for pair in pairs:
        ours, theirs = ([context.record(spec)["metric"] for spec in specs[rate, *cell]] for cell in pair)
        differences = [b - a for a, b in zip(ours, theirs, strict=True)]
        able = "yes" in set(frame.loc[list(pair), "learned"]) and frame.loc[list(pair), "at_grid_end"].isna().all()
        comparisons.append(None if not able else [statistics.fmean(differences)] if of_models else differences)
        runs += [spec for cell in pair for spec in specs[rate, *cell]]
    return all_lower(comparisons, runs, GREATEST, "nothing was learned, or a rate lies at an end of what was tried")


def _claims(rate: str, suffix: str) -> tuple[Claim, Claim]:
    """The two claims at a rate; only cells of which one was learned, and whose rates lie inside what was tried, are compared."""
    tasks, models, where = list(NAMES), ("AdamW", "POET"), f"learning rate {rate}"
    pretrained = [((method, "POET", task), (method, "AdamW", task)) for method, task in itertools.product(METHODS, tasks)]
    others = [((method, model, task), ("OFT", model, task)) for method, model, task in itertools.product(("Full FT", "POET"), models, tasks)]
    return (
        Claim(
            key=f"table4-poet-pretrained-better{suffix}", place="Section 5.2, Table 4", kind="finetuning",
            says=f"The POET-pretrained model is better than the AdamW-pretrained one on all tasks and by all finetuning methods ({where}).",
            rule="Metric of the AdamW-pretrained model minus that of the POET-pretrained one, in the mean over seeds of finetuning, in each cell that "
            "one of the two has learned: the largest difference is below zero. One run of each is finetuned, so n is 1 and the claim stays undecided.",
            unit="metric", region=NEGATIVE, measure=lambda context: _higher(context, rate, pretrained, of_models=True),
        ),
        Claim(
            key=f"table4-oft-worse{suffix}", place="Section 5.2, Table 4", kind="finetuning",
            says=f"OFT generally performs worse than full finetuning and POET ({where}).",
            rule="Metric of OFT minus that of full finetuning and of POET, paired by seed, in each cell that one of the two has learned: the largest "
            "mean difference is below zero.",
            unit="metric", region=NEGATIVE, measure=lambda context: _higher(context, rate, others),
        ),
    )


CLAIMS = (*_claims(PRINTED_RATE, ""), *_claims(TUNED, "-tuned"))
