"""Figure 5: how a constant budget of parameters is best divided between R and P.

The runs train the 60M model by POET-FS. The total of an m x n matrix is the parameters of blocks m/h and n/h, with h = 8, 4 and
3. R gets a share of the total and P the rest, from 1:0 (orthogonal training) to 0:1. Block sizes are whole numbers, so the
totals are only about constant; the CSV has the counts of the trained models. The paper calls 0.5:0.5 "standard POET". But
standard POET (blocks m/h and n/h) gives P more parameters than R wherever n > m, so it is trained too, with its own lines in the
CSV. The points that the paper prints at 0.5:0.5 are standard POET (erratum ``half-is-not-standard``) and stand on these lines.
With h = 2 the total would not fit into the shorter side of a matrix; with these h it does, at every scale.

Learning rates are those of the rows of Table 2 with b = 1/8 and 1/4. Table 2 has no row for h = 3, which uses those of b = 1/4.
"""

import math
from collections.abc import Sequence
from functools import partial

import pandas as pd

from analyses.common.ablation import perplexity_columns
from analyses.common.claim_forms import Pair, ordering, same_order
from analyses.common.controls import fitness_sentence
from analyses.common.evidence import perplexities, rank_agreement, rank_correlation
from analyses.common.grid import cell_runs
from analyses.common.paper_scale import model_label
from analyses.common.plotting import LINES, MARKERS, Axes, Figure, bars, numbered_figure, plain_logarithmic, pyplot, save_figure, spread_note
from analyses.common.published import read_published
from poet.launch.operations import on_meta
from poet.model import poet_layers
from poet.training.spec import RunSpec
from suite.claim import POSITIVE, Claim, Evidence
from suite.context import Context
from suite.scale import Scale

MODEL = "60m"
#: h of each budget, and the row of Table 2 whose learning rates it takes.
BUDGETS = {"small": (8, "poet-fs-1_8"), "medium": (4, "poet-fs-1_4"), "large": (3, "poet-fs-1_4")}
SHARES = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0)
EVEN = 0.5
#: In place of a share: standard POET, with blocks m/h and n/h.
STANDARD = "standard"


def parameters_of_sides(spec: RunSpec) -> tuple[int, int]:
    """Trainable parameters of all R and of all P of a run's model, counted on the meta device."""
    layers = [layer for _, layer in poet_layers(on_meta(spec)[1])]
    return sum(layer.primitive_r.parameters for layer in layers), sum(layer.primitive_p.parameters for layer in layers)


def specs(scale: Scale) -> dict[tuple[str, float | str], list[RunSpec]]:
    """The runs of each (budget, share of R or :data:`STANDARD`), by seed."""
    cells = {}
    for budget, (h, row) in BUDGETS.items():
        for share in (*SHARES, STANDARD):
            overrides = {"budget": 1 / h, **({} if share == STANDARD else {"share_r": share})}
            cells[budget, share] = cell_runs(scale, MODEL, row, overrides=overrides)
    return cells


def runs(scale: Scale) -> list[RunSpec]:
    return [spec for by_seed in specs(scale).values() for spec in by_seed]


def printed_share(share: str) -> float | str:
    """The allocation behind a printed point: its share of R, and :data:`STANDARD` where the paper prints one half."""
    return STANDARD if float(share) == EVEN else float(share)


def table(context: Context) -> pd.DataFrame:
    """One line for each budget and share, and one for each standard POET."""
    printed = {(p.budget, printed_share(p.share_r)): p for p in read_published("figure5").itertuples()}
    lines = []
    for (budget, share), by_seed in specs(context.scale).items():
        paper = printed.get((budget, share))
        r, p = parameters_of_sides(by_seed[0])
        lines.append({
            "budget": budget, "h": BUDGETS[budget][0],
            "allocation": STANDARD if share == STANDARD else f"{share:g}:{1 - share:g}",
            "share_r": math.nan if share == STANDARD else share, "share_r_trained": r / (r + p), "parameters_r": r,
            "parameters_p": p, "trainable_parameters": context.record(by_seed[0])["trainable_parameters"],
            "published": float(paper.perplexity) if paper else math.nan, **perplexity_columns(context, by_seed),
            "learning_rates_of": BUDGETS[budget][1], "note": paper.source if paper else "",
        })
    return pd.DataFrame(lines)


def best_shares(frame: pd.DataFrame, column: str) -> dict[str, str]:
    """The allocation of the lowest perplexity in each budget."""
    found = frame.dropna(subset=column)
    return {budget: part.loc[part[column].idxmin()].allocation for budget, part in found.groupby("budget", sort=False)}


def effects(frame: pd.DataFrame, column: str) -> dict[str, float]:
    """Relative excess of the worst allocation's perplexity over the best one's in each budget, among the allocations that the paper prints."""
    found = frame.dropna(subset="published").groupby("budget", sort=False)[column]
    return (found.max() / found.min() - 1).to_dict()


def _panel(axis: Axes, frame: pd.DataFrame, column: str, title: str) -> None:
    for index, (budget, part) in enumerate(frame.groupby("budget", sort=False)):
        points, h = part.dropna(subset=column).sort_values("share_r_trained"), part.h.iloc[0]
        axis.errorbar(
            points.share_r_trained, points[column], bars(points["std"]) if column == "measured" else None, capsize=2,
            marker=MARKERS[index], linestyle=LINES[index], color=f"C{index}", label=f"{budget} (h = {h})",
        )
        standard = points[points.share_r.isna()]
        axis.plot(
            standard.share_r_trained, standard[column], marker=MARKERS[index], markersize=11, fillstyle="none",
            linestyle="", color="black",
        )
    axis.set(title=title, xticks=SHARES, xlabel="R : P, shares of the parameters")
    axis.set_xticklabels([f"{share:g}:{1 - share:g}" for share in SHARES], rotation=45, ha="right")
    axis.invert_xaxis()


def draw(frame: pd.DataFrame, title: str) -> Figure:
    """Perplexity by share, measured (left, with ``title``) and printed (right)."""
    figure, axes = pyplot().subplots(1, 2, figsize=(9, 4.2))
    _panel(axes[0], frame, "measured", title)
    _panel(axes[1], frame, "published", f"{MODEL}, read off the paper's figure")
    limits = [(frame[column].min(), frame[column].max()) for column in ("measured", "published")]
    # Both axes span the same ratio of perplexities, so that slopes left and right can be compared.
    half = 1.04 * max(math.sqrt(high / low) for low, high in limits)
    for axis, (low, high) in zip(axes, limits, strict=True):
        middle = math.sqrt(low * high)
        axis.set(yscale="log", ylim=(middle / half, middle * half))
        plain_logarithmic(axis.yaxis)
    axes[0].set_ylabel("validation perplexity")
    axes[1].legend(fontsize="small", title="budget")
    figure.tight_layout()
    return figure


def build(context: Context) -> None:
    frame = table(context)
    parts = []
    for kind, column in (("measured", "measured"), ("printed", "published")):
        best = ", ".join(f"{share} ({budget})" for budget, share in best_shares(frame, column).items())
        worst = ", ".join(f"{excess:.0%} ({budget})" for budget, excess in effects(frame, column).items())
        parts.append(f"{kind} {best}, the worst printed allocation being above the best printed one by {worst}")
    findings = f"Best R:P: {'; '.join(parts)}."
    hollow = "Large hollow markers: standard POET, at the share that R has of all its parameters."
    note = f"{hollow} {spread_note(context)} {fitness_sentence(context, runs(context.scale))}"
    save_figure(draw(frame, f"{model_label(context.scale, MODEL)}, measured"), frame, context, ARTIFACT, note, findings)


def _rank_agreement(context: Context) -> Evidence:
    """Rank agreement over all printed points of the figure."""
    points, cells = read_published("figure5"), specs(context.scale)
    found = [cells[point.budget, printed_share(point.share_r)] for point in points.itertuples()]
    return rank_agreement(context, points.perplexity.astype(float).tolist(), found)


def _away_from_even(context: Context) -> Evidence:
    """Kendall's tau between the distance of R's share from one half and perplexity, mean over budgets."""
    cells, groups, runs_read = specs(context.scale), [], []
    for budget in BUDGETS:
        by_share = [cells[budget, share] for share in SHARES]
        groups.append(([abs(share - EVEN) for share in SHARES], [perplexities(context, by_seed) for by_seed in by_share]))
        runs_read += [spec for by_seed in by_share for spec in by_seed]
    return rank_correlation(groups, runs_read, f"mean over {len(groups)} budgets, {len(SHARES)} splits each")


def _against(scale: Scale, budgets: Sequence[str], others: Sequence[float]) -> list[Pair]:
    """Pairs of runs, standard POET and each of ``others``, in each of the given budgets."""
    cells = specs(scale)
    return [(cells[budget, STANDARD], cells[budget, share]) for budget in budgets for share in others if share != EVEN]


CLAIMS = (
    *(
        ordering(
            key=f"figure5-even-best-{budget}", place="Section 4, Figure 5",
            says=f"A balanced allocation between R and P performs best, here with the {budget} budget.",
            differences=f"standard POET, which is what the paper trained as 0.5:0.5, minus each uneven split of the {budget} budget",
            pairs=partial(_against, budgets=(budget,), others=SHARES),
        )
        for budget in BUDGETS
    ),
    ordering(
        key="figure5-poet-below-orthogonal-training", place="Sections 1 and 4, Figure 5",
        says="POET performs better than orthogonal training (all parameters in R) with about the same number of parameters.",
        differences="standard POET minus R:P = 1:0, in each of the three budgets",
        pairs=partial(_against, budgets=tuple(BUDGETS), others=(1.0,)),
    ),
    Claim(
        key="figure5-worse-away-from-even", place="Figure 5", kind="ordering",
        says="The further an allocation is from balanced, on either side, the worse it performs.",
        rule="Kendall's tau between the distance of R's share from 0.5 and the final perplexity, one for each seed, the mean "
        "over budgets: above zero. At distance 0 stands the equal split, and not standard POET.",
        unit="", region=POSITIVE, measure=_away_from_even,
    ),
    same_order(key="figure5-rank-agreement", place="Figure 5", measure=_rank_agreement),
)

ARTIFACT = numbered_figure(
    5, "Validation perplexity of POET-FS on LLaMA 60M when a constant total of parameters is divided between R and P.",
    runs=runs, build=build, models=(MODEL,), claims=CLAIMS,
)
