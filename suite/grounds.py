"""The data of the controls in :mod:`suite.fitness`: the trained runs, and the trials of learning rates."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from poet.methods import all_rows, get_method
from poet.training.spec import RunSpec
from suite.context import Context
from suite.rates import Trial
from suite.scale import Scale


def row_of(variant: str) -> str:
    """The row that a variant changes: "poet-bs-b256" for ``poet-bs-b256-init=xavier``; the variant itself if it belongs to no row."""
    rows = [row for row in all_rows() if variant == row or variant.startswith(f"{row}-")]
    return max(rows, key=len, default=variant)


@dataclass(frozen=True, slots=True)
class Subject:
    """The runs that a claim or a table is about.

    Attributes:
        models: the models of the runs.
        settings: a run of each (model, variant).
        pairs: runs of the two settings of each judged difference, on one model.
    """

    models: tuple[str, ...]
    settings: tuple[RunSpec, ...]
    pairs: tuple[tuple[RunSpec, RunSpec], ...]

    @property
    def has_poet(self) -> bool:
        """Whether one of the runs trains R and P."""
        return any(spec.method == "poet" for spec in self.settings)


def subject_of(runs: Iterable[RunSpec], compared: Iterable[tuple[RunSpec, RunSpec]] = ()) -> Subject:
    """The subject of a claim, from the specs of its runs.

    Args:
        compared: the runs of each comparison; pairs of different models are left out. If empty, each setting is compared with the model's first one.
    """
    settings: dict[tuple[str, str], RunSpec] = {}
    for spec in runs:
        settings.setdefault((spec.model, spec.variant), spec)
    pairs = {(one.model, one.variant, other.variant): (one, other) for one, other in compared if one.model == other.model}
    models = {model: spec for (model, _), spec in reversed(settings.items())}
    first = [(spec, models[spec.model]) for spec in settings.values() if spec is not models[spec.model]]
    return Subject(tuple(dict.fromkeys(model for model, _ in settings)), tuple(settings.values()), tuple(pairs.values() or first))


class Sweep:
    """The trials of a scale's table of rates."""

    def __init__(self, scale: Scale) -> None:
        self.table = scale.rate_table

    def chosen(self, spec: RunSpec) -> Trial | None:
        """The chosen trial of a run's row; None if the row was not tuned on this model at this length: rates borrowed from another one say nothing."""
        found = self.table.chosen(spec.model, row_of(spec.variant), spec.steps)
        return None if found is None or found.perplexity is None else found

    def neighbours(self, chosen: Trial) -> list[Trial]:
        """The trials next to a chosen one in one rate, all other rates equal."""
        alike, found = [t for t in self.table.trials if (t.model, t.row, t.steps) == (chosen.model, chosen.row, chosen.steps)], []
        for rate in chosen.rates:
            line = [t for t in alike if t.rates == {**chosen.rates, rate: t.rates.get(rate)}]
            line.sort(key=lambda t, rate=rate: t.rates[rate])
            place = line.index(chosen)
            found += [*line[max(place - 1, 0) : place], *line[place + 1 : place + 2]]
        return found

    def differences(self, one: RunSpec, other: RunSpec) -> list[float] | None:
        """log(perplexity) of one run's row minus that of the other's: first at the chosen rates, then with each neighbouring trial of either.

        None if one row was not tuned, both runs have one row's rates for one length, or there is no neighbouring trial.
        """
        a, b = self.chosen(one), self.chosen(other)
        if a is None or b is None or a is b:
            return None
        beside = [*((near, b) for near in self.neighbours(a)), *((a, near) for near in self.neighbours(b))]
        # The perplexity of a neighbour that diverged is infinite.
        return [math.log(x.perplexity) - math.log(y.perplexity) for x, y in ((a, b), *beside)] if beside else None


class Grounds:
    """The trained runs of a scale."""

    def __init__(self, context: Context, runs: Iterable[RunSpec]) -> None:
        self.scale: Scale = context.scale
        self.sweep = Sweep(self.scale)
        self._context, self._runs, self._ends = context, {spec.name: spec for spec in runs}, {}

    def trained(self, specs: Sequence[RunSpec]) -> bool:
        """Whether every given run was trained."""
        return all(self._runs.get(spec.name) == spec for spec in specs)

    def perplexities(self, specs: Sequence[RunSpec]) -> list[float]:
        """Final validation perplexities; infinity for a run that diverged."""
        for spec in specs:
            if spec.name not in self._ends:
                end = self._context.record(spec)["validation_perplexity"]
                self._ends[spec.name] = math.inf if math.isnan(end) else end
        return [self._ends[spec.name] for spec in specs]

    def differences(self, ours: Sequence[RunSpec], theirs: Sequence[RunSpec]) -> list[float]:
        """Final perplexities, ours minus theirs, by seed."""
        return [a - b for a, b in zip(self.perplexities(ours), self.perplexities(theirs), strict=True)]

    def log_ratios(self, ours: Sequence[RunSpec], theirs: Sequence[RunSpec]) -> list[float]:
        """log(our perplexity / theirs), by seed, in nats."""
        return [math.log(a) - math.log(b) for a, b in zip(self.perplexities(ours), self.perplexities(theirs), strict=True)]

    def row(self, model: str, row: str) -> list[RunSpec] | None:
        """Table 2's runs of a row, one per seed; None if one was not trained."""
        specs = [self.scale.run(model, row, seed) for seed in self.scale.seeds]
        return specs if self.trained(specs) else None

    def like(self, specs: Sequence[RunSpec], **changes: object) -> list[RunSpec] | None:
        """The runs that equal ``specs`` but for ``changes``, at the best trained rates; None if there are none."""
        return self._best([{**self._plain(spec), **changes} for spec in specs], specs, specs[0].method, specs[0].steps)

    def longer(self, specs: Sequence[RunSpec], factor: int) -> list[RunSpec] | None:
        """The runs that equal ``specs`` but are ``factor`` times as long; None if there are none.

        They have the rates that were tuned for this length or, if none were, the best trained ones. Parameters counted in steps may differ
        too: they may grow with the length (``intervals`` of the tuning protocol).
        """
        steps = factor * specs[0].steps
        chosen = self.scale.rate_table.chosen(specs[0].model, row_of(specs[0].variant), steps)
        rates = chosen.rates if chosen and chosen.steps else {}
        return self._best([self._plain(spec) for spec in specs], specs, specs[0].method, steps, rates)

    def other_method(self, specs: Sequence[RunSpec], method: str) -> list[RunSpec] | None:
        """The runs of another method of the same length, at the best trained rates; None if there are none."""
        return self._best([None] * len(specs), specs, method, specs[0].steps)

    def changed(self, spec: RunSpec) -> bool:
        """Whether a run has other parameters than its row, apart from learning rates. Those counted in steps may change with the length."""
        row = self.scale.run(spec.model, row_of(spec.variant), spec.seed)
        if spec.steps != row.steps:
            return self._plain(spec) != self._plain(row)
        rates = get_method(spec.method).learning_rates
        return any(spec.parameters.get(name) != value for name, value in row.parameters.items() if name not in rates)

    def _plain(self, spec: RunSpec) -> dict[str, object]:
        """A run's parameters without learning rates and without those counted in steps."""
        left_out = {*get_method(spec.method).learning_rates, *self.scale.intervals(row_of(spec.variant))}
        return {name: value for name, value in spec.parameters.items() if name not in left_out}

    def _best(
        self, wanted: Sequence[dict[str, object] | None], specs: Sequence[RunSpec], method: str, steps: int, rates: Mapping[str, float] = {}
    ) -> list[RunSpec] | None:
        """The variant with the lowest mean perplexity among those of a method, length, parameters (None: any) and given rates, one run per seed."""
        groups: dict[str, dict[int, RunSpec]] = {}
        parameters = dict(zip((spec.seed for spec in specs), wanted, strict=True))
        for spec in self._runs.values():
            if (spec.model, spec.method, spec.steps) == (specs[0].model, method, steps) and spec.seed in parameters:
                if parameters[spec.seed] in (None, self._plain(spec)) and rates.items() <= spec.parameters.items():
                    groups.setdefault(spec.variant, {})[spec.seed] = spec
        whole = [[found[spec.seed] for spec in specs] for found in groups.values() if len(found) == len(specs)]
        return min(whole, key=lambda group: statistics.fmean(self.perplexities(group)), default=None)
