"""The rungs of the ladder: the runs of a row at a length, and their final perplexities."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analyses.common.grid import BASELINE
from analyses.common.paper_scale import trainable
from poet.methods import all_rows
from poet.training.spec import RunSpec
from suite.claim import UNJUDGED_SCALES
from suite.context import Context
from suite.fitness import FULL, POET, TWO_RATES, WITHOUT_ROTATIONS
from suite.scale import Scale
from suite.statistics import interval_p, paired_interval
from suite.tuning.cells import Cell, cells, further_seeds, run_at, steps_of

#: The quantity of a rung's line.
PERPLEXITY = "validation perplexity"
#: The rows that rungs are compared with: AdamW with one rate, as the paper trains it, and with two.
BASELINES = {FULL: "AdamW", TWO_RATES: "AdamW, two rates"}


@dataclass(frozen=True, slots=True)
class Rung:
    """A row at a length.

    Attributes:
        rates: the source of its learning rates: "tuned", "censored" (tuned, and chosen at an end of what was tried) or "in force" (those
            of the full length; for :func:`larger_model`, and at scales that check the plumbing alone).
        specs: a run for each seed.
    """

    rates: str
    specs: list[RunSpec]

    def perplexities(self, context: Context) -> dict[int, float]:
        """Final perplexities by seed, of the runs that have a record; NaN where one diverged.

        Raises:
            RunError: a record is unreadable or was edited.
        """
        return {spec.seed: context.record(spec)["validation_perplexity"] for spec in self.specs if context.trained(spec)}


def steps_on(scale: Scale) -> list[Cell]:
    """The ladder's cells: those of models that are tuned at several lengths, by model and rising length."""
    found = cells(scale)
    lengths = {model: {cell.length for cell in found if cell.model == model} for model in scale.models}
    return [cell for cell in found if len(lengths[cell.model]) > 1]


def beside(scale: Scale) -> list[Cell]:
    """The cells of models that are tuned at one length. The ladder shows them and tests no order of theirs. Empty at a scale without a ladder."""
    steps = steps_on(scale)
    return [cell for cell in cells(scale) if cell not in steps] if steps else []


def rung(scale: Scale, cell: Cell) -> Rung | None:
    """The rung of a cell; None if it has no rates of its own yet."""
    chosen = scale.rate_table.chosen(cell.model, cell.row, steps_of(scale, cell))
    if chosen and chosen.steps is None and cell.length != 1:  # the table has no lengths, so its rates are those of the full one
        chosen = None
    if chosen is None and scale.name not in UNJUDGED_SCALES:
        return None
    rates = chosen.rates if chosen else scale.learning_rates(cell.model, cell.row)
    whence = "in force" if chosen is None else "censored" if chosen.open_sides else "tuned"
    seeds = dict.fromkeys([*scale.seeds, *further_seeds(scale, cell)])
    if cell.length == 1:  # Table 2's own runs, and more of them
        return Rung(whence, [scale.run(cell.model, cell.row, seed) for seed in seeds])
    return Rung(whence, [run_at(scale, cell, seed, rates) for seed in seeds])


def without_rotations(scale: Scale, cell: Cell) -> Rung | None:
    """POET without R and P, at the learning rates of POET's rung; None for other rows, and if that rung has no rates."""
    found = rung(scale, cell) if cell.row == POET else None
    if found is None:
        return None
    if cell.length == 1:  # the controls' own runs
        return Rung(found.rates, [scale.run(cell.model, cell.row, seed, overrides=WITHOUT_ROTATIONS) for seed in scale.seeds])
    rates = {name: found.specs[0].parameters[name] for name in all_rows()[cell.row][0].learning_rates}
    return Rung(found.rates, [run_at(scale, cell, seed, rates | WITHOUT_ROTATIONS) for seed in scale.seeds])


def larger_model(scale: Scale, cell: Cell) -> Rung | None:
    """AdamW on the next larger model at that model's full length; None if there is none, or the cell is not AdamW at full length."""
    models = list(scale.models)
    larger = models[models.index(cell.model) + 1 :][:1]
    if cell.row != FULL or cell.length != 1 or not larger:
        return None
    return Rung("in force", [scale.run(larger[0], FULL, seed) for seed in scale.seeds])


def tokens_per_parameter(scale: Scale, cell: Cell) -> float:
    """Tokens that a run of the cell trains on, for each matrix parameter of AdamW's model."""
    full = scale.run(cell.model, BASELINE, 0)
    return full.tokens / full.steps * steps_of(scale, cell) / trainable(full)


def gap(ours: dict[int, float], theirs: dict[int, float]) -> tuple[float, float, float] | None:
    """Mean over shared seeds of log(ours / theirs), in nats, with its 95% interval; None if no seed is shared.

    NaN if a run of a shared seed diverged; one shared seed gives an infinite interval.
    """
    differences = [math.log(ours[seed]) - math.log(theirs[seed]) for seed in sorted(set(ours) & set(theirs))]
    if not differences:
        return None
    return (math.nan,) * 3 if any(map(math.isnan, differences)) else paired_interval(differences)


def at_look(ours: dict[int, float], theirs: dict[int, float], looks: Sequence[int]) -> tuple[dict[int, float], dict[int, float]]:
    """Both rows' perplexities of the seeds of the last planned look that both have reached; of all shared seeds before the first look.

    Without it, every seed that is added would be a further look.
    """
    shared = sorted(set(ours) & set(theirs))
    seeds = shared[: max((look for look in looks if look <= len(shared)), default=len(shared))]
    return {seed: ours[seed] for seed in seeds}, {seed: theirs[seed] for seed in seeds}


def p_of_gap(ours: dict[int, float], theirs: dict[int, float], looks: int) -> float:
    """The two-sided p-value of a mean gap of zero, by the paired t-test; 1 where a run diverged, and for a single seed.

    It is multiplied by the number of ``looks``, the times that the order may be judged (Bonferroni).
    """
    between, n = gap(ours, theirs), len(set(ours) & set(theirs))
    if n < 2 or math.isnan(between[0]):
        return 1.0
    return min(1.0, looks * interval_p(abs(between[0]), between[2] - between[0], n))
