"""The runs of the controls (``analyses.controls.controls``): which row stands for each, and what differs from it."""

from dataclasses import dataclass
from typing import Any

from analyses.common.grid import cell_runs
from poet.training.spec import RunSpec
from suite.scale import Scale

MODELS = ("60m", "130m", "350m")
#: The model of the grids and of the comparison at equal cost.
SMALLEST = MODELS[0]
ADAMW, NORMALIZED, TWO_RATES, FROZEN, EXACT, EPS, POET_FS, POET_BS = (
    "AdamW", "AdamW, normalized init", "AdamW, two rates", "POET without R and P", "POET FS b=1/2, exact merge",
    "POET FS b=1/2, authors' eps", "POET FS b=1/2", "POET BS b=256",
)
#: Each control: a row, and what differs from it (where two rates were not tuned, :func:`specs_of` says which they are).
CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    ADAMW: ("adamw", {}),
    NORMALIZED: ("adamw", {"init": "normalized"}),
    TWO_RATES: ("adamw-two-rates", {}),
    FROZEN: ("poet-fs-1_2", {"budget_r": 0.0, "budget_p": 0.0}),
    EXACT: ("poet-fs-1_2", {"merge": "exact"}),
    EPS: ("poet-fs-1_2", {"adam_eps": "uncorrected"}),
    POET_FS: ("poet-fs-1_2", {}),
    POET_BS: ("poet-bs-b256", {}),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A control on a model."""

    model: str
    control: str  # a key of :data:`CONTROLS`
    own_rate: bool  # whether the learning rates are those of the row, not another of AdamW's grid
    specs: list[RunSpec]  # one for each seed


def specs_of(scale: Scale, model: str, control: str, **overrides: Any) -> list[RunSpec]:
    """The runs of a key of :data:`CONTROLS` on a model, by seed, with further method parameters."""
    row, own = CONTROLS[control]
    if control == TWO_RATES and not scale.learning_rates(model, row):  # not tuned: it takes POET's and AdamW's
        lenders = {"lr": CONTROLS[POET_FS][0], "matrix_lr": CONTROLS[ADAMW][0]}
        own = {name: scale.run(model, lender, 0).parameters["lr"] for name, lender in lenders.items()}
    return cell_runs(scale, model, row, overrides={**own, **overrides})


def cells(scale: Scale) -> list[Cell]:
    """Every control on every model that the scale has."""
    found = []
    for model in (m for m in MODELS if m in scale.models):
        grid = other_rates(scale) if model == SMALLEST else []
        for control in CONTROLS:
            own = specs_of(scale, model, control)
            found.append(Cell(model, control, True, own))
            if control in (ADAMW, NORMALIZED):
                found += [
                    Cell(model, control, False, specs_of(scale, model, control, lr=lr))
                    for lr in grid
                ]
    return found


def other_rates(scale: Scale) -> list[float]:
    """AdamW's further rates, at which both initializations are trained; empty if only one rate was tried.

    A choice inside what was tried is shown with its neighbours, and one at the end of it with all that were tried.
    """
    steps = scale.settings.models[SMALLEST].steps
    tried = sorted(rates["lr"] for rates in scale.rate_table.tried(SMALLEST, "adamw", steps))
    chosen = scale.tuned(SMALLEST, "adamw")
    if chosen is None or len(tried) < 2:
        return []
    own = chosen.rates["lr"]
    if not chosen.open_sides:
        place = tried.index(own)
        return [tried[place - 1], tried[place + 1]]
    return [lr for lr in tried if lr != own]
