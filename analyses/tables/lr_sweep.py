"""The learning rates behind every comparison: all trials of the protocol in ``config/tuning.yaml``, and the chosen ones.

``make tune`` trains the trials. This table holds the trained ones. A search that is not finished has chosen nothing yet. ``make record``
copies the table to the place where the scale reads it.
"""

import pandas as pd

from analyses.common.layout import write_csv
from poet.methods import all_rows
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.collection import RESULTS
from suite.context import Context
from suite.scale import Scale
from suite.tuning.cells import Tuning, steps_of


def runs(scale: Scale) -> list[RunSpec]:
    """The trained trials; the records of the results folder decide which these are."""
    return Tuning(scale, RESULTS).trials()


def table(context: Context) -> pd.DataFrame:
    """One line for each trained trial, by cell and in the order in which the search asked for them.

    Raises:
        RunError: there is no trained trial.
    """
    tuning = Tuning(context.scale, context.home)
    lines = []
    for cell in tuning.cells:
        names, decision = all_rows()[cell.row][0].learning_rates, tuning.decision(cell)
        for point in decision.tried:
            chosen = point == decision.best and decision.state != "searching"
            ends = [names[index] for index, _ in decision.open_sides] if chosen else []
            lines.append({
                "model": cell.model, "variant": cell.row, "length": str(cell.length), "steps": steps_of(context.scale, cell),
                **tuning.rates(cell, point), "perplexity": tuning.perplexity(tuning.spec(cell, point)),
                "chosen": "yes" if chosen else "", "at_grid_end": " ".join(dict.fromkeys(ends)), "state": decision.state,
            })
    if not lines:
        raise RunError(f"scale {context.scale.name} has no trial of a learning rate: run `make tune SCALE={context.scale.name}`")
    frame = pd.DataFrame(lines)
    last = ["perplexity", "chosen", "at_grid_end", "state"]
    frame = frame[[*(column for column in frame if column not in last), *last]]
    return frame.assign(scale=context.scale.name, seed=context.scale.protocol.seed)


def build(context: Context) -> None:
    write_csv(table(context), context.results / "lr_sweep.csv")


ARTIFACT = Artifact(
    label="Learning rates",
    caption="Validation perplexity of every trial of a learning rate, and the rates that were chosen.",
    outputs=("lr_sweep.csv",),
    runs=runs, build=build, in_all=False,
)
