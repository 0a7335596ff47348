"""The runs of the controls (``analyses.controls.controls``): each is a row with some parameters changed."""

from dataclasses import dataclass
from typing import Any

from analyses.common.grid import cell_runs
from analyses.ladder.rungs import rung, steps_on
from poet.training.spec import RunSpec
from suite.fitness import FULL, LONGER, POET, WITHOUT_ROTATIONS
from suite.scale import Scale
from suite.tuning.cells import run_at, steps_of

MODELS = ("60m", "130m", "350m")
#: The only model with other learning rates, and the one of the comparison at equal cost.
SMALLEST = MODELS[0]
ADAMW, NORMALIZED, TWO_RATES, FROZEN, EXACT, EPS, POET_FS, POET_BS = (
    "AdamW", "AdamW, normalized init", "AdamW, two rates", "POET without R and P", "POET FS b=1/2, exact merge",
    "POET FS b=1/2, authors' eps", "POET FS b=1/2", "POET BS b=256",
)
#: The row of each control, and the parameters that differ from it. AdamW with two rates takes further ones from :func:`specs_of` where it was not tuned.
VARIED: dict[str, tuple[str, dict[str, Any]]] = {
    ADAMW: ("adamw", {}),
    NORMALIZED: ("adamw", {"init": "normalized"}),
    TWO_RATES: ("adamw-two-rates", {}),
    FROZEN: ("poet-fs-1_2", WITHOUT_ROTATIONS),
    EXACT: ("poet-fs-1_2", {"merge": "exact"}),
    EPS: ("poet-fs-1_2", {"adam_eps": "uncorrected"}),
    POET_FS: ("poet-fs-1_2", {}),
    POET_BS: ("poet-bs-b256", {}),
}


@dataclass(frozen=True, slots=True)
class ControlRuns:
    """The runs of a control on a model."""

    model: str
    control: str  # a key of :data:`VARIED`
    own_rate: bool  # False for another learning rate of :func:`other_rates`
    specs: list[RunSpec]  # one for each seed


def specs_of(scale: Scale, model: str, control: str, **overrides: Any) -> list[RunSpec]:
    """The runs of a control on a model, by seed; ``overrides`` are further changed parameters."""
    row, own = VARIED[control]
    if control == TWO_RATES and not scale.learning_rates(model, row):  # not tuned: it takes the rates of POET and AdamW
        lenders = {"lr": VARIED[POET_FS][0], "matrix_lr": VARIED[ADAMW][0]}
        own = {name: scale.run(model, lender, 0).parameters["lr"] for name, lender in lenders.items()}
    return cell_runs(scale, model, row, overrides={**own, **overrides})


def cells(scale: Scale) -> list[ControlRuns]:
    """Every control on every model that the scale has."""
    found = []
    for model in (m for m in MODELS if m in scale.models):
        grid = other_rates(scale) if model == SMALLEST else []
        for control in VARIED:
            own = specs_of(scale, model, control)
            found.append(ControlRuns(model, control, True, own))
            if control in (ADAMW, NORMALIZED):
                found += [
                    ControlRuns(model, control, False, specs_of(scale, model, control, lr=lr))
                    for lr in grid
                ]
    return found


def other_rates(scale: Scale) -> list[float]:
    """Further learning rates at which AdamW is trained with both initializations; empty if the scale chose none or tried only one.

    They are the neighbours of the chosen rate or, if it lies at an end of what was tried, all other tried rates.
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


def longer(scale: Scale) -> list[ControlRuns]:
    """AdamW and POET-FS on 60M at :data:`suite.fitness.LONGER` times the length at their tuned rates, and AdamW at the tried rate below its own.

    Empty without tuned rates of that length."""
    found = []
    for cell in steps_on(scale):
        own = rung(scale, cell) if (cell.model, cell.length) == (SMALLEST, LONGER) else None
        if own is None or cell.row not in (FULL, POET):
            continue
        found.append(ControlRuns(SMALLEST, ADAMW if cell.row == FULL else POET_FS, True, own.specs))
        tried = [rates["lr"] for rates in scale.rate_table.tried(SMALLEST, FULL, steps_of(scale, cell))]
        lower = [lr for lr in tried if lr < own.specs[0].parameters["lr"]]
        if cell.row == FULL and lower:
            found.append(ControlRuns(SMALLEST, ADAMW, False, [run_at(scale, cell, spec.seed, {"lr": max(lower)}) for spec in own.specs]))
    return found if {one.control for one in found} == {ADAMW, POET_FS} else []
