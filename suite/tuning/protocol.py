"""The schema of ``config/tuning.yaml``: the protocol of tuning."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from poet.launch.sources import ROOT
from poet.methods import METHODS, all_rows
from poet.methods.contract import Method
from poet.system.validation import Settings, parse, read_yaml

#: A point of the grid: one exponent for each learning rate of a method, in the method's order.
Point = tuple[int, ...]
FILE = "config/tuning.yaml"


class Grid(Settings):
    base: PositiveFloat
    step: float = Field(gt=1, le=2)
    """factor between two neighbours; no larger than 2"""


class Trials(Settings):
    trials: PositiveInt
    """of each search, the same for all rows or methods"""
    at_most: PositiveInt
    """how many where the choice would be censored otherwise"""

    @model_validator(mode="after")
    def _check_most(self) -> Trials:
        if self.at_most < self.trials:
            raise ValueError(f"at_most is {self.at_most}, less than the {self.trials} trials")
        return self


class Budget(Trials):
    from_steps: PositiveInt
    """the shortest run that has this many trials"""


class FinetuningSearch(Trials):
    start: PositiveFloat
    """the learning rate that every search begins with"""


class Change(Settings):
    date: str
    what: str
    why: str


def check_known(kind: str, names: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Refuse unknown names.

    Raises:
        ValueError: a name is unknown; the message lists the known ones.
    """
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{where}unknown {kind} {unknown[0]!r}; known are {', '.join(known)}")


def _named(starts: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    known = METHODS | {row: method for row, (method, _) in all_rows().items()}
    check_known("row or method", starts, known)
    for name, rates in starts.items():
        if set(rates) != set(known[name].learning_rates):
            raise ValueError(f"{name} has the rates {', '.join(known[name].learning_rates)}, not {', '.join(rates)}")
    return starts


def _known_rates(shifts: dict[str, int]) -> dict[str, int]:
    check_known("rate", shifts, dict.fromkeys(name for method in METHODS.values() for name in method.learning_rates))
    return shifts


def _counted(intervals: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    check_known("method", intervals, METHODS)
    for name, given in intervals.items():
        check_known(f"parameter of {name}", given, METHODS[name].Parameters.__dataclass_fields__)
    return intervals


class Protocol(Settings):
    seed: NonNegativeInt
    """of every trial; tables may not use it"""
    grid: Grid
    trials: list[Budget] = Field(min_length=1)
    """how many, by the steps of a run"""
    larger_models: Trials
    """how many where a search starts from the choice of a smaller model"""
    starts: Annotated[dict[str, dict[str, PositiveFloat]], AfterValidator(_named)]
    """row or method: rate: where its search starts"""
    shifts: Annotated[dict[str, int], AfterValidator(_known_rates)]
    """rate: steps of the grid by which a start is moved from one length to the next longer one"""
    intervals: Annotated[dict[str, dict[str, NonNegativeInt]], AfterValidator(_counted)]
    """method: parameter that is counted in steps: the least that a shorter run has"""
    finetuning: FinetuningSearch
    """of Table 4, whose methods have one learning rate each"""
    looks: list[PositiveInt] = Field(min_length=1)
    """numbers of seeds of a rung at which orders of the ladder are judged, rising"""
    changes: list[Change]
    """what was changed after runs were seen, when and why"""

    @model_validator(mode="after")
    def _check(self) -> Protocol:
        starts = [budget.from_steps for budget in self.trials]
        if starts[0] != 1 or starts != sorted(set(starts)):
            raise ValueError(f"trials: from_steps begins with 1 and rises, unlike {starts}")
        if self.looks != sorted(set(self.looks)):
            raise ValueError(f"looks: these rise, unlike {self.looks}")
        return self

    def budget(self, steps: int) -> Trials:
        """The trials that a run of so many steps has."""
        return [budget for budget in self.trials if budget.from_steps <= steps][-1]

    def rates(self, names: tuple[str, ...], point: Point) -> dict[str, float]:
        """The learning rates of a point."""
        return {name: float(f"{self.grid.base * self.grid.step**k:.6g}") for name, k in zip(names, point, strict=True)}

    def point(self, names: tuple[str, ...], rates: dict[str, float]) -> Point:
        """The point of the grid that is nearest to the given rates."""
        return tuple(round(math.log(rates[name] / self.grid.base, self.grid.step)) for name in names)

    def start(self, method: type[Method], row: str) -> Point:
        """The point where the search of a row begins if no cell precedes it."""
        rates = self.starts.get(row) or self.starts.get(method.name)
        if rates is None:
            rates = {name: getattr(method.Parameters(), name) for name in method.learning_rates}
        return self.point(method.learning_rates, rates)


def load_protocol(root: Path = ROOT) -> Protocol:
    """The protocol of ``config/tuning.yaml``.

    Raises:
        ConfigError: the file is missing or invalid.
    """
    return parse(Protocol, read_yaml(root / FILE, FILE), FILE)
