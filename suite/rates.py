"""Learning-rate tables: ``lr_sweep.csv`` of a scale's tuning, and the published rates."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from poet.methods import all_rows
from poet.system.validation import ConfigError


@dataclass(frozen=True, slots=True)
class Trial:
    """A line of a table of learning rates.

    Attributes:
        model, row: the model, and the row that it was trained by.
        steps: length of the run; None in tables that have one length for each model.
        rates: learning rates by name.
        chosen: whether these are the rates to train with.
        open_sides: of a chosen line, the names of rates whose neighbour on some side was not tried: the choice is censored if there are any.
        perplexity: the trial's final perplexity, infinite if it diverged; None in tables of published rates.
    """

    model: str
    row: str
    steps: int | None
    rates: dict[str, float]
    chosen: bool
    open_sides: tuple[str, ...]
    perplexity: float | None = None


@dataclass(frozen=True, slots=True)
class RateTable:
    """A table of learning rates."""

    trials: tuple[Trial, ...] = ()

    def chosen(self, model: str, row: str, steps: int) -> Trial | None:
        """The chosen line for runs of this many steps; None if there is none."""
        return next((trial for trial in self._of(model, row, steps) if trial.chosen), None)

    def tried(self, model: str, row: str, steps: int) -> list[dict[str, float]]:
        """The rates that were tried, in the table's order."""
        return [trial.rates for trial in self._of(model, row, steps)]

    def _of(self, model: str, row: str, steps: int) -> list[Trial]:
        return [t for t in self.trials if (t.model, t.row) == (model, row) and t.steps in (None, steps)]


def read_rates(path: Path, root: Path) -> RateTable:
    """Read a table of learning rates, a file below ``root``.

    Raises:
        ConfigError: a column is missing, a row unknown, or a rate not a number.
    """
    rows, trials = all_rows(), []
    with open(path, newline="") as file:
        for line, entry in enumerate(csv.DictReader(file), start=2):
            try:
                names = rows[entry["variant"]][0].learning_rates
                trials.append(
                    Trial(
                        model=entry["model"],
                        row=entry["variant"],
                        steps=int(entry["steps"]) if entry.get("steps") else None,
                        rates={name: float(entry[name]) for name in names if entry[name]},
                        chosen=entry["chosen"] == "yes",
                        open_sides=tuple((entry["at_grid_end"] if "perplexity" in entry else "").split()),
                        perplexity=float(entry["perplexity"] or math.inf) if "perplexity" in entry else None,
                    )
                )
            except (KeyError, ValueError) as error:
                why = f"no row or column {error}" if isinstance(error, KeyError) else error
                raise ConfigError(f"{path.relative_to(root)}, line {line}: {why}: mend it, or put it back from git") from None
    return RateTable(tuple(trials))
