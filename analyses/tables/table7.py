"""Table 7: terms of the Neumann series.

POET-FS with b = 1/2 on the 130M model with k = 0 to 4 terms; k = 3 is Table 2's run. The paper prints "Not converged" for
k = 0. There ``published`` is empty, and the column ``note`` has the words.

Perplexity need not fall from row to row: at equal Q, k = 1 is further from orthogonal than k = 0, and k = 3 shrinks
(:mod:`analyses.figures.common.orthogonality`).
"""

import math

from analyses.common.ablation import COLLAPSED, ablation, printed_order, settings
from analyses.common.claim_forms import too_few
from analyses.common.evidence import largest_of, over_seeds, perplexities, rank_correlation
from analyses.common.published import read_published
from poet.training.spec import RunSpec
from suite.claim import NEGATIVE, POSITIVE, Claim, Evidence
from suite.context import Context
from suite.scale import Scale

MODEL, ROW = "130m", "poet-fs-1_2"
#: Settings with which the paper's runs converge.
CONVERGE = ("k=1", "k=2", "k=3", "k=4")
#: A run has not converged if the logarithm of its perplexity over a uniform guess's is at least this.
NOT_CONVERGED = math.log(COLLAPSED)


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each printed k, by seed."""
    labels = read_published("table7").scheme
    return settings(scale, MODEL, ROW, {label: {"neumann_terms": int(label.removeprefix("k="))} for label in labels})


def _below_a_guess(context: Context, settings: tuple[str, ...]) -> Evidence:
    """The logarithm of the final perplexity over that of a uniform guess, the largest mean over the given settings.

    A run that diverged counts as a uniform guess: it predicts nothing.
    """
    cells = {k: runs for k, runs in specs(context.scale).items() if k in settings}
    runs = [spec for by_seed in cells.values() for spec in by_seed]
    guess = runs[0].architecture.vocabulary
    by_setting = [[guess if math.isnan(p) else p for p in perplexities(context, by_seed)] for by_seed in cells.values()]
    diverged = sum(map(math.isnan, perplexities(context, runs)))
    note = f"diverged: {diverged} of {len(runs)} runs" if diverged else ""
    return largest_of([[math.log(p / guess) for p in values] for values in by_setting], runs, note)


def _trend(context: Context) -> Evidence:
    """Kendall's tau between k and perplexity where the paper's runs converge."""
    cells = [specs(context.scale)[k] for k in CONVERGE]
    numbers = [int(k.removeprefix("k=")) for k in CONVERGE]
    measured = [perplexities(context, by_seed) for by_seed in cells]
    return rank_correlation([(numbers, measured)], [spec for by_seed in cells for spec in by_seed])


def _trade_off(context: Context) -> Evidence:
    """The larger of two mean differences: perplexity at k = 3 minus k = 2, and the gain of the fourth term minus that of the third."""
    cells = [specs(context.scale)[k] for k in CONVERGE[1:]]
    by_seed = list(zip(*(perplexities(context, runs) for runs in cells), strict=True))
    third, beyond = [p3 - p2 for p2, p3, _ in by_seed], [(p3 - p4) - (p2 - p3) for p2, p3, p4 in by_seed]
    return largest_of([third, beyond], [spec for runs in cells for spec in runs])


def _slowdown(context: Context) -> Evidence:
    """The logarithm of the training time with four terms over that with one."""
    few, many = (specs(context.scale)[k] for k in (CONVERGE[0], CONVERGE[-1]))
    times = [[context.record(spec)["cost"]["train_seconds"] for spec in runs] for runs in (few, many)]
    return over_seeds([math.log(b / a) for a, b in zip(*times, strict=True)], (*few, *many))


CLAIMS = (
    Claim(
        key="table7-k0-diverges", place="Section 5.3, Table 7", kind="divergence",
        says="Without Neumann terms (k = 0) training diverges.",
        rule="The log of the final perplexity over that of a uniform guess (0 if the run diverged), mean over seeds: no less "
        f"than log {COLLAPSED:g}.",
        unit="nats", region=(NOT_CONVERGED, math.inf), measure=lambda context: _below_a_guess(context, ("k=0",)),
    ),
    Claim(
        key="table7-k1-to-k4-converge", place="Table 7", kind="convergence",
        says="With one to four Neumann terms training converges.",
        rule="The log of the final perplexity over that of a uniform guess (0 if the run diverged), the largest mean of k = 1 "
        f"to 4 with an interval that allows for the choice: below log {COLLAPSED:g}.",
        unit="nats", region=(-math.inf, math.nextafter(NOT_CONVERGED, -math.inf)), measure=lambda context: _below_a_guess(context, CONVERGE),
    ),
    Claim(
        key="table7-more-terms-better", place="Section 5.3", kind="ordering",
        says="Increasing the number of Neumann terms generally improves validation perplexity.",
        rule=f"Kendall's tau between k = 1 to 4 and the final perplexity, one for each seed; its mean is below zero.{too_few(len(CONVERGE))}",
        unit="", region=NEGATIVE, measure=_trend,
    ),
    Claim(
        key="table7-three-terms-suffice", place="Section 5.3", kind="ordering",
        says="Three terms are a good trade-off: the third still gains, and the fourth gains less.",
        rule="Final perplexity at k = 3 minus k = 2, and the gain from k = 3 to 4 minus that from k = 2 to 3, paired by seed. The "
        "larger mean, with an interval that allows for the choice, is below zero.",
        unit="perplexity", region=NEGATIVE, measure=_trade_off,
    ),
    Claim(
        key="table7-more-terms-slower", place="Section 5.3", kind="timing",
        says="More Neumann terms lead to slower training.",
        rule="The log of the training time with k = 4 over that with k = 1, paired by seed: its mean is above zero.",
        unit="nats", region=POSITIVE, measure=_slowdown,
        paper_only="short runs of small models spend their time elsewhere, and share their machine",
    ),
    printed_order(7, specs),
)
ARTIFACT = ablation(
    7, "Validation perplexity of POET-FS (b=1/2) on LLaMA 130M with k terms of the Neumann series.", MODEL, specs,
    {"scheme": "Scheme"}, CLAIMS,
)
