"""The claims about Table 2, from Section 5.1 and from the table itself.

Orderings of perplexities are judged by differences paired by seed. Claims about numbers of parameters are in
``analyses/tables/table2/counts.py``.
"""

import itertools
import math
from collections.abc import Sequence
from functools import partial

from analyses.common.ablation import collapsed
from analyses.common.claim_forms import Pair, ordering, printed_perplexity, same_order
from analyses.common.evidence import over_seeds, perplexities, rank_agreement, rank_correlation, share_of
from analyses.common.grid import BASELINE, MODELS, cell_runs
from analyses.common.published import printed_number
from analyses.tables.table2.counts import CLAIMS as COUNTS
from analyses.tables.table2.rows import BS, BY_BUDGET, FS, GALORE, LORA, POET, ROWS, label, printed
from suite.claim import Claim, Confounder, Evidence
from suite.context import Context
from suite.fitness import TWO_RATES, WITHOUT_ROTATIONS
from suite.grounds import Grounds
from suite.scale import Scale

#: The row of POET with as many trainable parameters as LoRA (4.81M against 4.85M at 60M, 30.04M against 30.28M at 350M).
LIKE_LORA = "poet-bs-b128"
#: Training counts as stable if at least this share of runs trains without failure.
STABLE = 0.9
#: Smallest rank correlation, in size, that counts as strong.
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
    over = f"mean over {len(groups)} models, {len(POET)} rows each" if len(groups) > 1 else f"{len(POET)} rows"
    return rank_correlation(groups, runs, over)


def _stability(context: Context) -> Evidence:
    """The share of POET's runs that neither diverged nor ended as a uniform guess."""
    models = [m for m in MODELS if m in context.scale.models]
    runs = [spec for model in models for row in POET for spec in cell_runs(context.scale, model, row)]
    ends = zip(runs, perplexities(context, runs), strict=True)
    return share_of([not math.isnan(end) and not collapsed([end], spec.architecture.vocabulary) for spec, end in ends], runs)


def _against_two_rates(grounds: Grounds, model: str, row: str) -> Evidence | None:
    """Perplexity of the row minus that of AdamW with two learning rates, at its best trained rates; None if either was not trained."""
    poet, adamw = grounds.row(model, row), grounds.row(model, BASELINE)
    alike = adamw and grounds.other_method(adamw, TWO_RATES)
    return over_seeds(grounds.differences(poet, alike)) if poet and alike else None


def _part_of_r_and_p(grounds: Grounds, model: str, row: str) -> Evidence | None:
    """(POET - POET without R and P) - (POET without R and P - AdamW) in perplexity. Below zero: R and P lower it by more than the rest."""
    poet, adamw = grounds.row(model, row), grounds.row(model, BASELINE)
    without = poet and grounds.like(poet, **WITHOUT_ROTATIONS)
    if not without or not adamw:
        return None
    own, rest = grounds.differences(poet, without), grounds.differences(without, adamw)
    return over_seeds([a - b for a, b in zip(own, rest, strict=True)])


def confounders(model: str, row: str) -> list[Confounder]:
    """Controls that could explain that a row of POET is below AdamW with one rate."""
    two = Confounder(name="AdamW with two learning rates", measure=partial(_against_two_rates, model=model, row=row))
    part = Confounder(name="POET without R and P, which has half of the lead", measure=partial(_part_of_r_and_p, model=model, row=row))
    return [two, part] if row == FS else [two]


def lower(
    key: str, place: str, model: str, pairs: list[tuple[str, str]], says: str, differences: str,
    confounders: Sequence[Confounder] = (),
) -> Claim:
    """The claim that the first row of every pair ends lower than the second one on a model."""
    return ordering(
        key=f"table2-{key}", place=place, says=says, differences=differences,
        pairs=partial(against, model, pairs), models=(model,), confounders=confounders,
    )


#: The row in bold of each model.
BEST = {model: printed(model).set_index("variant").perplexity.idxmin() for model in MODELS}
BEST_TWO = printed("1.3b").set_index("variant").perplexity[[FS, BS]]
#: Pairs of POET's rows, (larger, next smaller budget), within fully and block-stochastic POET.
STEPS = [(larger, smaller) for family in BY_BUDGET for smaller, larger in itertools.pairwise(family)]
CLAIMS = (
    # "Both POET-FS (b=1/2) and POET-BS (b=256) consistently outperform both GaLore and AdamW": one claim for each model.
    *(
        lower(
            f"{row}-below-adamw-{model}", "Section 5.1, Table 2", model, [(row, BASELINE)],
            f"{label(row)} outperforms AdamW at {model.upper()}.", f"{label(row)} minus AdamW at {model}",
            confounders(model, row),
        )
        for model in MODELS
        for row in (FS, BS)
    ),
    *(
        lower(
            f"poet-below-galore-{model}", "Section 5.1, Table 2", model, [(row, GALORE) for row in (FS, BS)],
            f"{label(FS)} and {label(BS)} outperform GaLore at {model.upper()}.",
            f"{label(FS)} and {label(BS)}, each minus GaLore at {model}",
        )
        for model in MODELS
    ),
    *(
        lower(
            f"best-{model}", "Section 5.1, Table 2" if model == MODELS[-1] else "Table 2, in bold", model,
            [(best, row) for row in ROWS if row != best],
            f"{label(best)} has the lowest perplexity of all rows at {model.upper()}.",
            f"{label(best)} minus each other row at {model}",
        )
        for model, best in BEST.items()
    ),
    lower(
        "second-best-1.3b", "Section 5.1", "1.3b", [(BS, row) for row in ROWS if row not in (FS, BS)],
        f"{label(BS)} is second best at 1.3B, after {label(FS)}.",
        f"{label(BS)} minus each other row at 1.3b but {label(FS)}",
    ),
    *(
        lower(
            f"larger-budgets-{model}", "Section 5.1", model, STEPS,
            f"Larger parameter budgets consistently yield better results, here at {model.upper()}.",
            f"each row of POET at {model} minus the one of the same variant with the next smaller block",
        )
        for model in MODELS
    ),
    Claim(
        key="table2-budget-correlation", place="Section 5.1", kind="ordering",
        says="POET's performance is strongly correlated with the parameter budget.",
        rule="Kendall's tau between the printed trainable parameters of POET's six rows and their final perplexities, one for "
        f"each seed, the mean over models: {-STRONG:g} or below; its p-value is against a tau of zero.",
        unit="", region=(-1.0, -STRONG), measure=_budget_correlation,
    ),
    *(
        lower(
            f"poet-below-lora-{model}", "Section 5.1", model, [(LIKE_LORA, LORA)],
            f"POET significantly outperforms LoRA at a similar parameter budget, here at {model.upper()}.",
            f"{label(LIKE_LORA)} minus {label(LORA)} at {model}",
        )
        for model in MODELS
    ),
    lower(
        "bs-below-fs-130m", "Section 5.1", "130m", [(BS, FS)],
        "At 130M, block-stochastic POET does better than fully stochastic POET with fewer trainable parameters.",
        f"{label(BS)} minus {label(FS)} at 130m",
    ),
    *COUNTS,
    Claim(
        key="table2-poet-trains-stably", place="Section 1", kind="convergence",
        says="POET trains stably across model scales.",
        rule="The share of POET's runs that neither diverge nor end as a uniform guess, with its exact interval: "
        f"{STABLE:.0%} or more. Seeds count as independent, although those of one cell share its rates.",
        unit="share of runs", region=(STABLE, 1.0), measure=_stability,
    ),
    *(
        same_order(
            key=f"table2-rank-agreement-{model}", place=f"Table 2, {model.upper()}",
            measure=partial(agreement, model=model), models=(model,),
        )
        for model in MODELS
    ),
    *(
        printed_perplexity(
            key=f"table2-perplexity-{row}-1.3b", place="Section 5.1, Table 2",
            says=f"{label(row)} reaches a validation perplexity of {perplexity:.2f} at 1.3B.",
            published=perplexity, specs=partial(cell_runs, model="1.3b", row=row), models=("1.3b",),
        )
        for row, perplexity in BEST_TWO.items()
    ),
)
