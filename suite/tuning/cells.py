"""The cells that a scale tunes, and the search of each cell, replayed over the records of a results folder."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from poet.methods import all_rows
from poet.training.spec import RunSpec
from suite.records import changed_code, whole_record
from suite.scale import Scale
from suite.settings import Tuned
from suite.tuning.protocol import Point, Trials
from suite.tuning.search import WAITING, Decision, search


@dataclass(frozen=True, slots=True)
class Cell:
    """A row on a model at a length. Each cell has its own learning rates, from a search of its own.

    Attributes:
        model, row: keys of the scale's models and of ``poet.methods.all_rows()``.
        length: share of the model's steps that its runs have.
    """

    model: str
    row: str
    length: Fraction

    def __str__(self) -> str:
        return f"{self.model} {self.row} at {self.length}"


def run_at(scale: Scale, cell: Cell, seed: int, rates: dict[str, float]) -> RunSpec:
    """The run of a cell with given rates; its name spells them out.

    Warmup and the parameters in the protocol's ``intervals``, which are counted in steps, are scaled by the cell's length.
    """
    steps = steps_of(scale, cell)
    own = scale.run(cell.model, cell.row, seed).parameters
    intervals = {
        name: max(min(own[name], least), round(own[name] * cell.length))
        for name, least in scale.intervals(cell.row).items()
        if cell.length != 1
    }
    spec = scale.run(cell.model, cell.row, seed, overrides={**rates, **intervals}, spell_all=True, steps=steps)
    return replace(spec, warmup_steps=round(spec.warmup_steps * cell.length))


def steps_of(scale: Scale, cell: Cell) -> int:
    """Steps of a cell's runs."""
    return max(1, round(scale.settings.models[cell.model].steps * cell.length))


def _cells_of(part: Tuned) -> list[Cell]:
    return [Cell(part.model, row, length) for length in part.lengths for row in (part.rows or all_rows())]


def further_seeds(scale: Scale, cell: Cell) -> list[int]:
    """The seeds of a cell's rung beside those of the scale, for a second look; none if the scale has too few for a first look."""
    if len(scale.seeds) < scale.protocol.looks[0]:
        return []
    return [seed for part in scale.settings.tuning if cell in _cells_of(part) for seed in part.seeds]


def cells(scale: Scale) -> list[Cell]:
    """All cells that the scale tunes on its models, smaller models and shorter lengths first."""
    found = [cell for part in scale.settings.tuning if part.model in scale.models for cell in _cells_of(part)]
    order = list(scale.models)
    return sorted(dict.fromkeys(found), key=lambda cell: (order.index(cell.model), cell.length))


def is_trial(scale: Scale, spec: RunSpec) -> bool:
    """Whether a run is a trial of the scale's tuning, at any rates."""
    for cell in cells(scale):
        method, _ = all_rows()[cell.row]
        if (cell.model, method.name, steps_of(scale, cell)) == (spec.model, spec.method, spec.steps):
            rates = {name: spec.parameters[name] for name in method.learning_rates}
            if run_at(scale, cell, scale.protocol.seed, rates) == spec:
                return True
    return False


class Tuning:
    """The searches of a scale over the records of a results folder."""

    def __init__(self, scale: Scale, results: Path) -> None:
        self.scale, self.results, self.protocol = scale, results, scale.protocol
        self.cells = cells(scale)
        self.decision = functools.cache(self._decision)

    def spec(self, cell: Cell, point: Point) -> RunSpec:
        """The trial of a point."""
        return run_at(self.scale, cell, self.protocol.seed, self.rates(cell, point))

    def rates(self, cell: Cell, point: Point) -> dict[str, float]:
        """The learning rates of a point."""
        return self.protocol.rates(all_rows()[cell.row][0].learning_rates, point)

    def budget(self, cell: Cell) -> Trials:
        """How many trials a cell has."""
        before = self.before(cell)
        if before is not None and before.model != cell.model:
            return self.protocol.larger_models
        return self.protocol.budget(steps_of(self.scale, cell))

    def trials(self, cells: Iterable[Cell] | None = None, *, waiting: bool = False) -> list[RunSpec]:
        """The trials of the given cells (None: all) that the searches have used or, if ``waiting``, that they ask for next."""
        found = []
        for cell in self.cells if cells is None else cells:
            decision = self.decision(cell)
            found += [self.spec(cell, point) for point in (decision.next if waiting else decision.tried)]
        return found

    def perplexity(self, spec: RunSpec) -> float | None:
        """The final perplexity of a trial; NaN if it diverged. None without a record of this spec, or if the scale retrains and the code changed.

        Raises:
            RunError: its record cannot be read.
        """
        record = whole_record(self.results / "runs" / spec.name / "record.json")
        if record is None or record["spec_digest"] != spec.digest:
            return None
        stale = self.scale.settings.retrain and changed_code(spec, record, self.scale.device(spec.model))
        return None if stale else record["validation_perplexity"]

    def with_starts(self, cells: Iterable[Cell]) -> list[Cell]:
        """The given cells and all cells that their searches start from, directly or indirectly, in the order of :attr:`cells`."""
        wanted: set[Cell | None] = {None}
        for cell in cells:
            while cell not in wanted:
                wanted.add(cell)
                cell = self.before(cell)
        return [cell for cell in self.cells if cell in wanted]

    def before(self, cell: Cell) -> Cell | None:
        """The cell whose choice starts a cell's search: the next shorter length, else the next smaller model; None: the protocol's start."""
        own = [c for c in self.cells if (c.model, c.row) == (cell.model, cell.row) and c.length < cell.length]
        if own:
            return own[-1]
        order = list(self.scale.models)
        smaller = [c for c in self.cells if (c.row, c.length) == (cell.row, cell.length) and order.index(c.model) < order.index(cell.model)]
        return smaller[-1] if smaller else None

    def _decision(self, cell: Cell) -> Decision:
        start = self._start(cell)
        if start is None:
            return WAITING
        budget, known = self.budget(cell), {}
        while True:
            decision = search(start, known, budget.trials, budget.at_most)
            new = {point: self.perplexity(self.spec(cell, point)) for point in decision.next}
            found = {point: value for point, value in new.items() if value is not None}
            if not found:
                return decision
            known |= found

    def _start(self, cell: Cell) -> Point | None:
        """The first point of a cell's search; None until the cell that it starts from is decided."""
        method, _ = all_rows()[cell.row]
        before = self.before(cell)
        if before is None:
            return self.protocol.start(method, cell.row)
        decision = self.decision(before)
        if decision.state in ("waiting", "searching"):
            return None
        if decision.best is None:  # every trial diverged
            return self.protocol.start(method, cell.row)
        shifts = self.protocol.shifts if before.model == cell.model else {}
        names = method.learning_rates
        return tuple(k + shifts.get(name, 0) for k, name in zip(decision.best, names, strict=True))

