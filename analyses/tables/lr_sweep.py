"""The learning-rate sweep behind the fairness of every comparison at mini scale.

Every row of a comparison table is trained with every combination of its grid (``sweep.grids`` of the scale, by model),
with a seed that no table uses. The rule: the lowest validation perplexity is chosen; a diverged
run is never chosen; a choice at the end of its grid is marked, because a wider grid might have done better. The result
goes to ``analyses/recorded/`` by ``make record``, where the scale reads it: a table never waits for a sweep.
"""

import itertools

import pandas as pd

from analyses.common.layout import write_csv
from poet.methods import all_rows
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.context import Context
from suite.scale import Scale


def axes(scale: Scale, model: str, row: str) -> dict[str, list[float]]:
    """The grid of a table row on a model, or that of its method; empty if the scale has neither."""
    grids, (method, _) = scale.settings.grids[model], all_rows()[row]
    return grids.get(row, grids.get(method.name, {}))


def grid(scale: Scale, model: str, row: str) -> list[dict[str, float]]:
    """The combinations of learning rates for a table row on a model; none if the scale has no grid for it."""
    names = axes(scale, model, row)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())] if names else []


def candidates(scale: Scale) -> list[tuple[RunSpec, str, dict[str, float]]]:
    """(run, its row's key, its learning rates), in the order of the table; none if the scale sweeps nothing."""
    return [
        (scale.run(model, key, scale.settings.sweep.seed, overrides=rates, spell_all=True), key, rates)
        for model in scale.settings.grids
        for key in all_rows()
        for rates in grid(scale, model, key)
    ]


def runs(scale: Scale) -> list[RunSpec]:
    return [spec for spec, _, _ in candidates(scale)]


def table(context: Context) -> pd.DataFrame:
    """One line per run: model, variant, learning rates, perplexity, chosen, at_grid_end."""
    lines = []
    for spec, variant, rates in candidates(context.scale):
        record = context.record(spec)
        lines.append({"model": spec.model, "variant": variant, **rates, "perplexity": record["validation_perplexity"]})
    if not lines:
        raise RunError(f"scale {context.scale.name} sweeps no learning rates: give its file a `sweep`, or use mini")
    frame = pd.DataFrame(lines)
    frame["chosen"], frame["at_grid_end"] = "", ""
    for (model, variant), part in frame.groupby(["model", "variant"]):
        if part.perplexity.isna().all():
            continue
        best = part.perplexity.idxmin()
        frame.loc[best, "chosen"] = "yes"
        names = axes(context.scale, model, variant)
        ends = [name for name, values in names.items() if frame.loc[best, name] in (min(values), max(values))]
        frame.loc[best, "at_grid_end"] = " ".join(ends)
    frame["scale"] = context.scale.name
    frame["seed"] = context.scale.settings.sweep.seed
    return frame


def build(context: Context) -> None:
    write_csv(table(context), context.results / "lr_sweep.csv")


ARTIFACT = Artifact(
    label="Learning-rate sweep",
    caption="Validation perplexity of every method over its grid of learning rates.",
    outputs=("lr_sweep.csv",),
    runs=runs, build=build, in_all=False,
)
