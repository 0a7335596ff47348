"""What the controls of :mod:`suite.fitness` read: runs that were trained, and the scale's sweep of learning rates."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poet.methods import all_rows, get_method
from poet.training.spec import RunSpec
from suite.context import Context
from suite.rates import Trial
from suite.scale import Scale


def row_of(variant: str) -> str:
    """The row of a variant, without what differs from it: "poet-bs-b256" of ``poet-bs-b256-init=xavier``; itself if it is of no row."""
    rows = [row for row in all_rows() if variant == row or variant.startswith(f"{row}-")]
    return max(rows, key=len, default=variant)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged.

    Attributes:
        models: of the runs.
        settings: (model, variant) of each.
        pairs: (model, variant, variant) of those whose difference is judged.
    """

    models: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    pairs: tuple[tuple[str, str, str], ...]

    @property
    def has_poet(self) -> bool:
        """Whether any of it trains R and P."""
        rows = all_rows()
        return any(row_of(variant) in rows and rows[row_of(variant)][0].name == "poet" for _, variant in self.settings)


def subject(settings: Iterable[tuple[str, str]], compared: Iterable[tuple[str, str, str]] = ()) -> Subject:
    """What some runs judge.

    Args:
        settings: (model, variant) of the runs.
        compared: (model, variant, variant); where there are none, all of a model are compared with its first.
    """
    settings, pairs = tuple(dict.fromkeys(settings)), tuple(dict.fromkeys(compared))
    if not pairs:
        first: dict[str, str] = {}
        for model, variant in settings:
            first.setdefault(model, variant)
        pairs = tuple((model, variant, first[model]) for model, variant in settings if variant != first[model])
    return Subject(tuple(dict.fromkeys(model for model, _ in settings)), settings, pairs)


def subject_of(runs: Iterable[RunSpec], compared: Iterable[tuple[RunSpec, RunSpec]] = ()) -> Subject:
    """As :func:`subject`, of runs."""
    pairs = [(one.model, one.variant, other.variant) for one, other in compared if one.model == other.model]
    return subject([(spec.model, spec.variant) for spec in runs], pairs)


class Sweep:
    """Trials of learning rates at the models' own lengths, of a scale's table of rates."""

    def __init__(self, scale: Scale) -> None:
        steps = {name: model.steps for name, model in scale.settings.models.items()}
        self.trials = [t for t in scale.rate_table.trials if t.perplexity is not None and t.steps in (None, steps.get(t.model))]

    def chosen(self, model: str, variant: str) -> Trial | None:
        """The chosen trial of a variant's row; None where the model has none of its own: what it borrows says nothing of it."""
        return next((t for t in self.trials if (t.model, t.row, t.chosen) == (model, row_of(variant), True)), None)

    def neighbours(self, chosen: Trial) -> list[Trial]:
        """The trials next to a chosen one in one rate, all other rates equal."""
        alike, found = [t for t in self.trials if (t.model, t.row) == (chosen.model, chosen.row)], []
        for rate in chosen.rates:
            line = [t for t in alike if t.rates == {**chosen.rates, rate: t.rates.get(rate)}]
            line.sort(key=lambda t, rate=rate: t.rates[rate])
            place = line.index(chosen)
            found += [*line[max(place - 1, 0) : place], *line[place + 1 : place + 2]]
        return found

    def differences(self, model: str, one: str, other: str) -> list[float] | None:
        """log(perplexity) of one variant minus that of another: at the chosen rates, then with each neighbour of either.

        None where one was not swept, both are of one row, or nothing is beside them.
        """
        a, b = self.chosen(model, one), self.chosen(model, other)
        if a is None or b is None or a is b:
            return None
        beside = [*((near, b) for near in self.neighbours(a)), *((a, near) for near in self.neighbours(b))]
        # A neighbour that diverged is worse than anything.
        return [math.log(x.perplexity) - math.log(y.perplexity) for x, y in ((a, b), *beside)] if beside else None


class Grounds:
    """Runs that were trained at a scale.

    Attributes:
        scale: theirs.
        sweep: of its learning rates.
    """

    def __init__(self, context: Context, runs: Iterable[RunSpec]) -> None:
        self.scale: Scale = context.scale
        self.sweep = Sweep(self.scale)
        self._context, self._runs, self._ends = context, {spec.name: spec for spec in runs}, {}

    def trained(self, specs: Sequence[RunSpec]) -> bool:
        """Whether all of some runs are among these."""
        return all(self._runs.get(spec.name) == spec for spec in specs)

    def perplexities(self, specs: Sequence[RunSpec]) -> list[float]:
        """Final validation perplexities; infinite where a run diverged."""
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
        """The runs of a row as tables have them, by seed; None where they were not trained."""
        specs = [self.scale.run(model, row, seed) for seed in self.scale.seeds]
        return specs if self.trained(specs) else None

    def like(self, specs: Sequence[RunSpec], **changes: object) -> list[RunSpec] | None:
        """The runs of the same length that differ from some by a few parameters, at the best of the rates that were trained."""
        return self._best([{**self._plain(spec), **changes} for spec in specs], specs, specs[0].method, specs[0].steps)

    def longer(self, specs: Sequence[RunSpec], factor: int) -> list[RunSpec] | None:
        """The runs that differ from some by their length, at the best of the rates that were trained.

        What is counted in steps may have grown with the length (``intervals`` of the tuning protocol).
        """
        return self._best([self._plain(spec) for spec in specs], specs, specs[0].method, factor * specs[0].steps)

    def other_method(self, specs: Sequence[RunSpec], method: str) -> list[RunSpec] | None:
        """The runs of another method as long, at the best of the rates that were trained."""
        return self._best([None] * len(specs), specs, method, specs[0].steps)

    def _plain(self, spec: RunSpec) -> dict[str, object]:
        """A run's parameters without its learning rates, and without what is counted in steps."""
        left_out = {*get_method(spec.method).learning_rates, *self.scale.intervals(row_of(spec.variant))}
        return {name: value for name, value in spec.parameters.items() if name not in left_out}

    def _best(
        self, wanted: Sequence[dict[str, object] | None], specs: Sequence[RunSpec], method: str, steps: int
    ) -> list[RunSpec] | None:
        """By seed the runs of a method, length and parameters (None: any) whose mean perplexity is lowest; None where there are none."""
        groups: dict[str, dict[int, RunSpec]] = {}
        parameters = dict(zip((spec.seed for spec in specs), wanted, strict=True))
        for spec in self._runs.values():
            if (spec.model, spec.method, spec.steps) == (specs[0].model, method, steps) and spec.seed in parameters:
                if parameters[spec.seed] in (None, self._plain(spec)):
                    groups.setdefault(spec.variant, {})[spec.seed] = spec
        whole = [[found[spec.seed] for spec in specs] for found in groups.values() if len(found) == len(specs)]
        return min(whole, key=lambda group: statistics.fmean(self.perplexities(group)), default=None)
