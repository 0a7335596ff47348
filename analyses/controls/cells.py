"""The runs of the controls (``analyses.controls.controls``): which row stands for each, and what differs from it."""

from dataclasses import dataclass
from typing import Any

from poet.training.spec import RunSpec
from suite.scale import Scale

MODELS = ("60m", "130m", "350m")
#: AdamW's grid ends below its best rate on 60M: the controls go on to these multiples of its last rate.
BEYOND = (2, 4)
#: The model of the grids and of the comparison at equal cost.
SMALLEST = MODELS[0]
ADAMW, NORMALIZED, TWO_RATES, FROZEN, EXACT, POET_FS, POET_BS = (
    "AdamW", "AdamW, normalized init", "AdamW, two rates", "POET without R and P", "POET FS b=1/2, exact merge",
    "POET FS b=1/2", "POET BS b=256",
)
#: Each control: a row, and what differs from it (of two rates, :func:`specs_of` says which).
CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    ADAMW: ("adamw", {}),
    NORMALIZED: ("adamw", {"init": "normalized"}),
    TWO_RATES: ("adamw-two-rates", {}),
    FROZEN: ("poet-fs-1_2", {"budget_r": 0.0, "budget_p": 0.0}),
    EXACT: ("poet-fs-1_2", {"merge": "exact"}),
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
    if control == TWO_RATES:
        lenders = {"lr": CONTROLS[POET_FS][0], "matrix_lr": CONTROLS[ADAMW][0]}
        own = {name: scale.run(model, lender, 0).parameters["lr"] for name, lender in lenders.items()}
    return [scale.run(model, row, seed, overrides={**own, **overrides}) for seed in scale.seeds]


def cells(scale: Scale) -> list[Cell]:
    """Every control on every model that the scale has."""
    found = []
    for model in (m for m in MODELS if m in scale.models):
        grid = scale.settings.grids.get(model, {}).get("adamw", {}).get("lr", []) if model == SMALLEST else []
        grid = [*grid, *(multiple * max(grid) for multiple in BEYOND if grid)]
        for control in CONTROLS:
            own = specs_of(scale, model, control)
            found.append(Cell(model, control, True, own))
            if control in (ADAMW, NORMALIZED):
                found += [
                    Cell(model, control, False, specs_of(scale, model, control, lr=lr))
                    for lr in grid
                    if lr != own[0].parameters["lr"]
                ]
    return found
