"""The controls of a scale, as shown above tables and claims and in the captions of figures."""

from collections.abc import Sequence

from analyses.common.grid import grid_runs
from analyses.common.layout import markdown_table
from poet.training.spec import RunSpec
from suite.claim import UNJUDGED_SCALES
from suite.context import Context
from suite.discovery import discover
from suite.fitness import CONTROLS, NEEDS, Reading, readings
from suite.grounds import Grounds, subject_of
from suite.judging import why_not
from suite.scale import load_scale
from suite.wording import listed

#: The scale without GPUs that trains as many tokens per parameter as the paper.
LONG = "night"
#: The text in place of the controls, at scales that need none.
_UNASKED = {"paper": "", **{scale: f"The {scale} scale checks the plumbing: it is fit to judge nothing." for scale in UNJUDGED_SCALES}}


def grounds_of_all(context: Context) -> Grounds:
    """The runs of everything that ``snakemake all`` makes at the scale; of artifacts that lack runs, those that were trained."""
    makeable = {name: a for name, a in discover().items() if a.in_all and not a.missing(context.scale)}
    short = {*context.left_out, *context.narrowed}
    runs = [spec for name, artifact in makeable.items() for spec in artifact.runs(context.scale) if name not in short or context.trained(spec)]
    return Grounds(context, runs)


def table_section(context: Context, specs: Sequence[RunSpec]) -> str:
    """The section above a table: the controls, read from the table's own runs."""
    more = "These are from the table's own runs; claims.md has the controls of all runs, and what they let the scale judge."
    return _section(context, Grounds(context, specs), specs, more)


def fitness_sentence(context: Context, specs: Sequence[RunSpec]) -> str:
    """A sentence for a figure's caption: whether its own runs pass the controls that an order needs; empty at paper scale."""
    scale = context.scale.name
    if scale in _UNASKED:
        return _UNASKED[scale]
    why = why_not(readings(Grounds(context, specs), subject_of(specs), NEEDS["ordering"]))
    return f"By these runs the {scale} scale is {f'not fit to judge orders ({why})' if why else 'fit to judge orders'}."


def scale_section(context: Context, grounds: Grounds) -> str:
    """The section of the claims and the report: the controls for the rows of Table 2 on the scale's models, read from all runs."""
    specs = [spec for spec in grid_runs(context.scale) if grounds.trained([spec])]
    return _section(context, grounds, specs, "These are from the runs of all tables and figures. Each claim is judged by the controls that it needs, on its own models and rows.")


def _section(context: Context, grounds: Grounds, specs: Sequence[RunSpec], more: str) -> str:
    scale = context.scale.name
    if scale in _UNASKED:
        return _UNASKED[scale]
    found = readings(grounds, subject_of(specs), NEEDS["ordering"])
    why = why_not(found)
    fit = f"The {scale} scale is **not fit to judge orders** here ({why}{_longer(scale, specs)})" if why else f"The {scale} scale is fit to judge orders here"
    rules = {control.name: control.rule for control in CONTROLS}
    rows = [[name, rules[name], shown(reading), reading.outcome] for name, reading in found.items()]
    table = markdown_table(["known fact", "passes if", "measured", ""], "llll", rows)
    return f"{fit}: known facts are its controls. What was not measured has not passed. {more}\n\n{table}"


def _longer(scale: str, specs: Sequence[RunSpec]) -> str:
    """A phrase on the models that night scale trains with the paper's tokens for each matrix parameter; empty if there are none, and at night scale."""
    models = [model for model in load_scale({"scale": LONG, "seeds": [0]}).models if any(spec.model == model for spec in specs)]
    return f"; `SCALE={LONG}` trains {' and '.join(models)} with the paper's tokens for each matrix parameter" if models and scale != LONG else ""


def shown(reading: Reading) -> str:
    """The numbers of a control; only the first few if there are many."""
    return listed(reading.measured.split("; "), 6, "; ")
