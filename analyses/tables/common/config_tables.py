"""What Tables 8, 9 and 10 share: the configuration of this repository at paper scale, against the printed one.

Column ``measured`` has the number of a run by ``config/scales/paper.yaml`` (:meth:`suite.scale.Scale.run`), and ``published`` the
printed number. A cell agrees if the two are equal. A cell that does not agree keeps both and has a ``reason``.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import pandas as pd

from analyses.common.evidence import ALL, share_agreeing
from analyses.common.layout import crossed_table, markdown_page, numbered_table, write_table
from analyses.common.paper_scale import paper_scale
from analyses.common.published import cell, read_published
from poet.methods import get_method, table_rows
from poet.methods.contract import parse_parameters
from poet.methods.poet import POET
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Claim
from suite.context import Context
from suite.scale import Scale

#: Unit of every column of Tables 9 and 10, in their order.
HYPERPARAMETER_UNITS = {
    "# GPU": "devices",
    "lr (base)": "1",
    "lr (POET)": "1",
    "training steps": "steps",
    "batch size": "rows a device",
    "grad acc.": "micro-batches a device",
}
#: A note on the columns about devices: what their agreement does not show.
DEVICES = (
    '"# GPU" is what a run asks for, and "grad acc." what follows from it: the micro-batches of a step are shared among its '
    "devices, and on fewer of them each takes more."
)


def quotient(whole: int, parts: int) -> int | float:
    """whole / parts, an integer where it is one."""
    return whole / parts if whole % parts else whole // parts


def hyperparameters(spec: RunSpec, gpus: int) -> dict[str, int | float]:
    """The line of a POET run in Table 9 or 10, by column, if it runs on ``gpus`` devices.

    ``accumulation`` of a run counts the micro-batches of all devices; the paper counts those of one."""
    parameters = parse_parameters(get_method(spec.method), spec.parameters)
    return {
        "# GPU": gpus, "lr (base)": parameters.lr, "lr (POET)": parameters.poet_scale * parameters.poet_lr,
        "training steps": spec.steps, "batch size": quotient(spec.batch_rows, spec.accumulation),
        "grad acc.": quotient(spec.accumulation, gpus),
    }


def poet_runs(scale: Scale, model: str, variant: str) -> dict[str, RunSpec]:
    """The POET runs of a model and a variant ("fs" or "bs"), by their printed specification: "b=1/2" (FS) or "b=256" (BS)."""
    found = {}
    for key, (method, _) in table_rows().items():
        if method is POET:
            spec = scale.run(model, key, 0)
            parameters = parse_parameters(method, spec.parameters)
            if parameters.variant == variant:
                found[f"b={Fraction(parameters.budget) if variant == 'fs' else parameters.block_size}"] = spec
    return found


def compare(
    name: str, configured: Callable[[str, str], Mapping[str, int | float]], units: Mapping[str, str],
    reasons: Mapping[tuple[str, str], str],
) -> pd.DataFrame:
    """The tidy table: each cell of ``analyses/published/<name>.csv`` beside the configured number of ``configured(model, spec)``.

    ``units`` are by parameter. ``reasons`` say why the cells of a (model, parameter) are known to differ.

    Raises:
        KeyError: the paper prints a model, specification or parameter that the configuration does not have.
    """
    lines = []
    for row in read_published(name).to_dict("records"):
        model, spec = row.pop("model"), row.pop("Spec.", "")
        values = configured(model, spec)
        for parameter, printed in row.items():
            agrees = cell(printed) == values[parameter]
            lines.append({
                "model": model, "spec": spec, "parameter": parameter, "printed": printed, "published": cell(printed),
                "measured": values[parameter], "n": 1, "std": math.nan, "unit": units[parameter], "scale": "any",
                "agrees": "yes" if agrees else "no",
                "reason": "" if agrees else reasons.get((model, parameter), "Not explained."),
            })
    # dtype object: counts stay integers beside learning rates.
    return pd.DataFrame(lines, dtype=object)


def markdown(frame: pd.DataFrame, artifact: Artifact, down: tuple[str, ...], across: str, notes: list[str]) -> str:
    """The table of :func:`compare` in the paper's layout, then sentences on the cells that agree and differ, and notes.

    The columns ``down`` name its rows, and the values of the column ``across`` its columns."""
    frame = frame.assign(model="Llama " + frame.model.str.upper())
    table = crossed_table(frame, down, across, lambda line: line.printed if line.agrees == "yes" else f"{line.printed} / **{line.measured:,}**")
    differing = frame[frame.agrees == "no"]
    sentences = [f"{len(frame) - len(differing)} of {len(frame)} printed cells agree with the configuration."]
    for (model, parameter, reason), part in differing.groupby(["model", "parameter", "reason"], sort=False):
        sentences.append(f"{model}, {parameter} ({len(part)} of the cells): {reason}")
    about = f"{artifact.caption} Cells that differ: printed / **ours**."
    return markdown_page(artifact.label, about, table, sentences=(*sentences, *notes))


def hyperparameters_artifact(number: int, variant: str, reasons: Mapping[tuple[str, str], str]) -> Artifact:
    """Table 9 ("fs") or 10 ("bs"); see :func:`compare` for the reasons."""
    name, method = f"table{number}", f"POET-{variant.upper()}"

    def build(context: Context) -> None:
        frame = hyperparameter_table(name, variant, reasons)
        text = markdown(frame, artifact, ("model", "spec"), "parameter", [DEVICES])
        write_table(context, artifact, frame.drop(columns="printed"), text)

    artifact = numbered_table(
        number, f"Hyperparameters of {method}, as printed and as configured at paper scale.",
        build=build,
        claims=(cells_claim(name, f"Table {number}", f"The hyperparameters of {method}"),),
    )
    return artifact


def hyperparameter_table(name: str, variant: str, reasons: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """:func:`compare` for Table 9 or 10."""
    scale = paper_scale()

    def configured(model: str, spec: str) -> dict[str, int | float]:
        return hyperparameters(poet_runs(scale, model, variant)[spec], scale.resources(model)["gpus"])

    return compare(name, configured, HYPERPARAMETER_UNITS, reasons)


def cells_claim(name: str, place: str, what: str) -> Claim:
    """The claim that the configuration has the printed cells of Table 8, 9 or 10. ``what`` names the content of the table."""
    return Claim(
        key=f"{name}-cells", place=place, kind="number", configuration=True,
        says=f"{what} are those of the printed cells.",
        rule="Share of the printed cells that config/scales/paper.yaml has as they are printed: all of them. Where a cell cannot be "
        "had together with another statement of the paper, the table's column `reason` says which.",
        unit="share of cells", region=ALL,
        measure=lambda context: share_agreeing(context.table(name), "agrees", ("model", "spec", "parameter")),
    )
