"""What the paper says about Table 2: Section 5.1, and the table itself.

Orderings of perplexities are judged by differences paired by seed, as the table's own verdicts are. Claims about numbers
of parameters stand in ``analyses/tables/table2/counts.py``.
"""

import math
from functools import partial

from analyses.common.ablation import collapsed
from analyses.common.claim_forms import Pair, ordering, printed_perplexity, same_order
from analyses.common.comparisons import perplexities, rank_agreement
from analyses.common.evidence import rank_correlation, share_of
from analyses.common.grid import BASELINE, MODELS, cell_runs
from analyses.common.published import printed_number
from analyses.tables.table2.counts import CLAIMS as COUNTS
from analyses.tables.table2.rows import BS, BY_BUDGET, FS, GALORE, LORA, POET, ROWS, label, printed
from suite.claim import Claim, Evidence
from suite.context import Context
from suite.scale import Scale

#: The row of POET with as many trainable parameters as LoRA (4.81M against 4.85M at 60M, 30.04M against 30.28M at 350M).
LIKE_LORA = "poet-bs-b128"
#: The share of runs that have to train without failure for training to count as stable.
STABLE = 0.9
#: A rank correlation that counts as strong.
STRONG = 0.5


def against(model: str, pairs: list[tuple[str, str]], scale: Scale) -> list[Pair]:
    """The runs of (lower, higher) rows on a model."""
    return [(cell_runs(scale, model, lower), cell_runs(scale, model, higher)) for lower, higher in pairs]


def agreement(context: Context, model: str) -> Evidence:
    """Rank agreement of a model's printed rows."""
    rows = printed(model)
    return rank_agreement(context, rows.perplexity.tolist(), [cell_runs(context.scale, model, row) for row in rows.variant])


def _budget_correlation(context: Context) -> Evidence:
    """Kendall's tau between POET's printed parameters and measured perplexities, mean over the scale's models."""
    groups, runs = [], []
    for model in (m for m in MODELS if m in context.scale.models):
        cells = {row: cell_runs(context.scale, model, row) for row in POET}
        budgets = printed(model).set_index("variant").trainable.map(printed_number)[list(POET)].tolist()
        groups.append((budgets, [perplexities(context, specs) for specs in cells.values()]))
        runs += [spec for specs in cells.values() for spec in specs]
    return rank_correlation(groups, runs, f"mean over {len(groups)} models, {len(POET)} rows each")


def _stability(context: Context) -> Evidence:
    """The share of POET's runs that neither diverged nor ended as a uniform guess."""
    models = [m for m in MODELS if m in context.scale.models]
    runs = [spec for model in models for row in POET for spec in cell_runs(context.scale, model, row)]
    ends = zip(runs, perplexities(context, runs), strict=True)
    return share_of([not math.isnan(end) and not collapsed([end], spec.architecture.vocabulary) for spec, end in ends], runs)


def _better_than_baselines() -> list[Claim]:
    """ "Both POET-FS (b=1/2) and POET-BS (b=256) consistently outperform both GaLore and AdamW": each model has its own."""
    adamw = [
        ordering(
            key=f"table2-{row}-below-adamw-{model}", place="Section 5.1, Table 2",
            says=f"{label(row)} outperforms AdamW at {model.upper()}.",
            differences=f"{label(row)} minus AdamW at {model}",
            pairs=partial(against, model, [(row, BASELINE)]), models=(model,),
        )
        for model in MODELS
        for row in (FS, BS)
    ]
    galore = [
        ordering(
            key=f"table2-poet-below-galore-{model}", place="Section 5.1, Table 2",
            says=f"{label(FS)} and {label(BS)} outperform GaLore at {model.upper()}.",
            differences=f"{label(FS)} and {label(BS)}, each minus GaLore at {model}",
            pairs=partial(against, model, [(row, GALORE) for row in (FS, BS)]), models=(model,),
        )
        for model in MODELS
    ]
    return [*adamw, *galore]


def _best_rows() -> list[Claim]:
    """The row in bold of each model, and the second best one at 1.3B."""
    claims = []
    for model in MODELS:
        best = printed(model).set_index("variant").perplexity.idxmin()
        claims.append(ordering(
            key=f"table2-best-{model}", place="Section 5.1, Table 2" if model == MODELS[-1] else "Table 2, in bold",
            says=f"{label(best)} has the lowest perplexity of all rows at {model.upper()}.",
            differences=f"{label(best)} minus each other row at {model}",
            pairs=partial(against, model, [(best, row) for row in ROWS if row != best]), models=(model,),
        ))
    second = ordering(
        key="table2-second-best-1.3b", place="Section 5.1",
        says=f"{label(BS)} is second best at 1.3B, after {label(FS)}.",
        differences=f"{label(BS)} minus each other row at 1.3b but {label(FS)}",
        pairs=partial(against, "1.3b", [(BS, row) for row in ROWS if row not in (FS, BS)]), models=("1.3b",),
    )
    return [*claims, second]


def _budgets() -> list[Claim]:
    """Larger budgets, LoRA at a similar one, and block-stochastic against fully stochastic."""
    steps = [(larger, smaller) for family in BY_BUDGET for smaller, larger in zip(family, family[1:], strict=False)]
    larger = [
        ordering(
            key=f"table2-larger-budgets-{model}", place="Section 5.1",
            says=f"Larger parameter budgets consistently yield better results, here at {model.upper()}.",
            kind="trend",
            differences=f"each row of POET at {model} minus the one of the same variant with the next smaller block",
            pairs=partial(against, model, steps), models=(model,),
        )
        for model in MODELS
    ]
    correlated = Claim(
        key="table2-budget-correlation", place="Section 5.1", kind="trend",
        says="POET's performance is strongly correlated with the parameter budget.",
        rule="Kendall's tau between the printed trainable parameters of POET's six rows and their final perplexities, one for "
        f"each seed, the mean over models: {-STRONG:g} or below.",
        unit="", region=(-1.0, -STRONG), measure=_budget_correlation,
    )
    lora = [
        ordering(
            key=f"table2-poet-below-lora-{model}", place="Section 5.1",
            says=f"POET significantly outperforms LoRA at a similar parameter budget, here at {model.upper()}.",
            differences=f"{label(LIKE_LORA)} minus {label(LORA)} at {model}",
            pairs=partial(against, model, [(LIKE_LORA, LORA)]), models=(model,),
        )
        for model in MODELS
    ]
    block = ordering(
        key="table2-bs-below-fs-130m", place="Section 5.1",
        says="At 130M, block-stochastic POET does better than fully stochastic POET with fewer trainable parameters.",
        differences=f"{label(BS)} minus {label(FS)} at 130m",
        pairs=partial(against, "130m", [(BS, FS)]), models=("130m",),
    )
    return [*larger, correlated, *lora, block]


def _others() -> list[Claim]:
    """Stable training, the printed order, and the best two numbers."""
    stable = Claim(
        key="table2-poet-trains-stably", place="Section 1", kind="bound",
        says="POET trains stably across model scales.",
        rule="The share of POET's runs that neither diverge nor end as a uniform guess, with its exact interval: "
        f"{STABLE:.0%} or more.",
        unit="share of runs", region=(STABLE, 1.0), measure=_stability,
    )
    orders = [
        same_order(
            key=f"table2-rank-agreement-{model}", place=f"Table 2, {model.upper()}",
            measure=partial(agreement, model=model), models=(model,),
        )
        for model in MODELS
    ]
    best_two = printed("1.3b").set_index("variant").perplexity
    numbers = [
        printed_perplexity(
            key=f"table2-perplexity-{row}-1.3b", place="Section 5.1, Table 2",
            says=f"{label(row)} reaches a validation perplexity of {best_two[row]:.2f} at 1.3B.",
            published=best_two[row], specs=partial(cell_runs, model="1.3b", row=row), models=("1.3b",),
        )
        for row in (FS, BS)
    ]
    return [stable, *orders, *numbers]


CLAIMS = (*_better_than_baselines(), *_best_rows(), *_budgets(), *COUNTS, *_others())
