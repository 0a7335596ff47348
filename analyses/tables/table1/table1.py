"""Table 1: trainable parameters and memory of AdamW, GaLore and POET, by formula and as measured in runs.

Runs: four rows of Table 2 on the 60M model. They record after their first step how many elements each linear layer holds
(``poet.training.memory``). Columns ``published`` and ``expected`` come from formulas (``analyses.tables.table1.memory_formulas``): as the
paper prints them, and with a block size for each side of a rectangular matrix. All numbers are numbers of elements. The paper's memory
does not include gradients and the index buffers of POET's permutations; they have lines of their own.
"""

import math
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import nn

from analyses.common.evidence import exactly, ALL, BELOW_HALF, share_agreeing
from analyses.common.grid import cell_runs
from analyses.common.layout import markdown_page, markdown_table, measured_columns, numbered_table, write_table
from analyses.common.paper_scale import matrix_shapes, paper_scale
from analyses.common.published import read_published
from analyses.tables.table1.memory_formulas import FORMULAS, QUANTITIES, expected, formula_texts, published
from poet.config import POETConfig
from poet.launch.operations import on_meta
from poet.linear import POETLinear
from poet.methods import get_method
from poet.methods.contract import parse_parameters
from poet.training.llama import build_llama
from poet.training.memory import count_elements
from poet.training.spec import RunSpec
from suite.claim import Claim, Evidence
from suite.context import Context
from suite.scale import Scale

MODEL = "60m"
#: Rows of Table 2 that stand for the lines of Table 1.
ROWS = {"adamw": "adamw", "galore": "galore", "poet-fs": "poet-fs-1_2", "poet-bs": "poet-bs-b256"}
WHOLE = "whole model"
#: Table 2's smallest budgets.
SMALL = {"poet-fs": "poet-fs-1_8", "poet-bs": "poet-bs-b64"}


def specs(scale: Scale) -> dict[str, list[RunSpec]]:
    """The runs of each line of the printed table, by seed."""
    return {key: cell_runs(scale, MODEL, row) for key, row in ROWS.items()}


def held_by_shape(held: list[dict[str, Any]]) -> pd.DataFrame:
    """Elements that the layers of a run held by quantity, with the paper's total, as means over the layers of each shape (m, n)."""
    layers = pd.DataFrame(held)
    return layers.assign(total=layers.weights + layers.state).groupby(["m", "n"])[list(QUANTITIES)].mean()


def table(context: Context) -> pd.DataFrame:
    """One line per method, quantity and matrix shape, and one per method and quantity for the whole model."""
    printed = {line.variant: line for line in read_published("table1").itertuples()}
    lines = []
    for key, by_seed in specs(context.scale).items():
        formulas, method = FORMULAS[key], get_method(by_seed[0].method)
        parameters = parse_parameters(method, by_seed[0].parameters)
        held = [context.record(spec)["held"] for spec in by_seed]
        counts = pd.DataFrame(held[0]).groupby(["m", "n"]).size().to_dict()
        runs = list(map(held_by_shape, held))
        # The matrices that each line covers: their number by shape.
        groups = {f"{m} x {n}": {(m, n): 1} for m, n in counts} | {WHOLE: counts}
        for quantity, label in QUANTITIES.items():
            for group, members in groups.items():
                paper, formula = (
                    sum(number * formula(formulas, m, n, parameters)[quantity] for (m, n), number in members.items())
                    for formula in (published, expected)
                )
                values = [sum(number * run.at[shape, quantity] for shape, number in members.items()) for run in runs]
                inputs, outputs = (math.nan, math.nan) if group == WHOLE else next(iter(members))
                lines.append({
                    "method": printed[key].method, "variant": by_seed[0].variant, "matrix": group, "inputs": inputs,
                    "outputs": outputs, "matrices": counts.get((inputs, outputs), sum(counts.values())),
                    "quantity": label, "published_formula": getattr(printed[key], quantity, ""),
                    "formula": formula_texts(formulas)[quantity], "published": paper, "expected": formula,
                    **measured_columns(values), "agrees": agreement(formula, values),
                    "published_agrees": agreement(paper, values), "unit": "elements", "scale": context.scale.name,
                    "corpus": context.scale.corpus,
                })
    return pd.DataFrame(lines, dtype=object)  # sizes stay integers beside the empty cells of the whole model


def agreement(formula: float, values: list[float]) -> str:
    """Whether every run held what a formula gives; empty where there is no formula (NaN)."""
    return "" if math.isnan(formula) else "yes" if all(value == formula for value in values) else "no"


def markdown(frame: pd.DataFrame) -> str:
    """As the paper lays it out, one table for each printed column, then a sentence on what differs."""
    scale = frame.scale.iloc[0]
    about = f"Each cell: printed formula's value / **held by the run**, in elements, of the {MODEL} model at {scale} scale."
    tables = []
    for quantity, heading in (("trainable", "# trainable params"), ("total", "Memory cost")):
        part = frame[frame.quantity == QUANTITIES[quantity]]
        width = part.groupby("method").size().max()
        rows = []
        for method, own in part.groupby("method", sort=False):
            cells = (
                ("" if line.matrix == WHOLE else f"{line.matrix}: ") + f"{line.published:,.0f} / **{line.measured:,.0f}**"
                for line in own.itertuples()
            )
            rows.append([method, own.published_formula.iloc[0], *cells])
        heads = ["Method", heading, *["one matrix"] * (width - 1), WHOLE]
        tables.append(markdown_table(heads, "ll" + "r" * width, rows))
    agree = int((frame.agrees == "yes").sum())
    said = [f"{agree} of {len(frame)} lines of table1.csv hold what the formulas give when each side has its own b."]
    wrong = frame[frame.published_agrees == "no"]
    wrong = wrong.assign(ratio=(wrong.measured / wrong.published).astype(float))
    for (method, formula), part in wrong.groupby(["method", "published_formula"], sort=False):
        single = part[part.matrix != WHOLE]
        said.append(
            f"{method}: {formula} as printed differs from what is held for {', '.join(single.matrix)}: held over printed "
            f"{', '.join(f'{ratio:.2f}' for ratio in single.ratio)}. One b cannot be the same share of both sides."
        )
    buffers = frame[(frame.quantity == QUANTITIES["indices"]) & (frame.measured > 0) & (frame.matrix == WHOLE)]
    for line in buffers.itertuples():
        said.append(f"{line.method}: {line.measured:,.0f} int64 index elements on top, which the paper does not count.")
    return markdown_page(f"{ARTIFACT.label}, {scale} scale", ARTIFACT.caption, about, *tables, sentences=said)


def as_held(context: Context, keys: tuple[str, ...]) -> Evidence:
    """The share of the printed formulas' values, over matrix shapes, that the runs of the given methods (``keys``) held."""
    frame, printed = context.table("table1"), read_published("table1")
    names = printed[printed.variant.isin(keys)].method
    quantities = [QUANTITIES["trainable"], QUANTITIES["total"]]
    part = frame[frame.method.isin(names) & frame.quantity.isin(quantities) & (frame.matrix != WHOLE)]
    runs = [spec for key in keys for spec in specs(context.scale)[key]]
    return share_agreeing(part, "published_agrees", ("method", "matrix", "quantity"), runs)


def with_one_size(context: Context) -> Evidence:
    """The share of the printed formulas' values that a POET-FS layer holds, over matrix shapes, with one b for both sides: half of the shorter side."""
    frame, equal = context.table("table1"), []
    part = frame[(frame.variant == ROWS["poet-fs"]) & (frame.quantity == QUANTITIES["trainable"]) & (frame.matrix != WHOLE)]
    for m, n in part[["inputs", "outputs"]].astype(int).itertuples(index=False):
        b = min(m, n) // 2
        layer = POETLinear(m, n, POETConfig(variant="fs", budget_r=b / m, budget_p=b / n))
        optimizer = torch.optim.AdamW(layer.parameters())
        layer(torch.ones(1, m)).sum().backward()
        optimizer.step()
        model = nn.ModuleDict({"model": nn.ModuleDict({"layers": nn.ModuleDict({"q_proj": layer})})})  # names that count_elements counts
        (held,) = count_elements(model, [optimizer])
        equal += [held["trainable"] == b * (b - 1), held["weights"] + held["state"] == m * n + 3 * b * (b - 1)]
    return exactly(sum(equal) / len(equal), n=len(equal))


def memory_beside_adamw(context: Context) -> Evidence:
    """The larger of the two variants' memory at a small budget over AdamW's for the same matrices, by the formulas without shortcuts, for the paper's 60M model."""
    ratios = {}
    for key, row in SMALL.items():
        spec, shapes = paper_scale().run(MODEL, row, 0), matrix_shapes(MODEL, row).values()
        parameters = parse_parameters(get_method(spec.method), spec.parameters)
        own, adamw = (sum(expected(FORMULAS[name], m, n, parameters)["total"] for m, n in shapes) for name in (key, "adamw"))
        ratios[row] = own / adamw
    return exactly(max(ratios.values()), note=", ".join(f"{row} {ratio:.2f}" for row, ratio in ratios.items()))


def after_export(context: Context) -> Evidence:
    """Tensors of the paper's 60M model that differ in name or shape once POET is merged into plain weights."""
    paper, differing = paper_scale(), 0
    for row in (row for key, row in ROWS.items() if key.startswith("poet")):
        spec = paper.run(MODEL, row, 0)
        method, model = on_meta(spec)
        plain = build_llama(spec.architecture, device="meta")
        before, after = ({(k, tuple(t.shape)) for k, t in m.state_dict().items()} for m in (plain, method.export(model)))
        differing += len(before ^ after)
    return exactly(float(differing), note="by shapes: no weights are needed", n=2)


FORMULAS_RULE = (
    "Trainable parameters, and weights plus optimizer state, of every matrix shape of the 60M model as its runs held them "
    "(results/table1.csv): share equal to the printed formulas' values: all of them."
)
CLAIMS = (
    Claim(
        key="table1-adamw-and-galore", place="Table 1", kind="number", exact=True,
        says="AdamW trains mn parameters in 3mn of memory, GaLore mn in mn + mr + 2nr.",
        rule=FORMULAS_RULE,
        unit="share of values", region=ALL, measure=partial(as_held, keys=("adamw", "galore")),
    ),
    Claim(
        key="table1-poet-fs", place="Table 1", kind="number", exact=True,
        says="Fully stochastic POET of size b, one for both sides, trains b(b-1) parameters in mn + 3b(b-1) of memory.",
        rule="Trainable parameters, and weights plus optimizer state, that a layer of every matrix shape of the 60M model holds after a step "
        "of AdamW, with half of the shorter side as b of both sides: share equal to the printed formulas' values: all of them. With b as a share of each side, "
        "as Table 2 has it, they are other numbers (results/table1.csv; erratum one-b-for-two-sides).",
        unit="share of values", region=ALL, measure=with_one_size,
    ),
    Claim(
        key="table1-poet-bs", place="Table 1", kind="number", exact=True,
        says="Block-stochastic POET trains (m+n)(b-1)/2 parameters in mn + 3(m+n)(b-1)/2 of memory.",
        rule=FORMULAS_RULE,
        unit="share of values", region=ALL, measure=partial(as_held, keys=("poet-bs",)),
    ),
    Claim(
        key="table1-less-memory-than-adamw", place="Section 4, Parameter and memory complexity", kind="ordering", exact=True,
        says="With a suitable budget both variants of POET can need much less memory than AdamW.",
        rule="Weights plus optimizer state of all matrices of the paper's 60M model, by the formulas that equal what runs hold (results/table1.csv), the larger one of "
        "POET-FS b=1/8 and POET-BS b=64, Table 2's smallest budgets, over AdamW's for the same matrices: below one half.",
        unit="of AdamW's memory", region=BELOW_HALF, measure=memory_beside_adamw,
    ),
    Claim(
        key="table1-same-model-for-inference", place="Sections 3.1 and 4, Inductive bias", kind="invariance", exact=True,
        says="For inference POET's network has the architecture and the parameter count of a conventionally trained one.",
        rule="Tensors of the 60M model, by name and shape, that differ after POET (FS b=1/2, BS b=256) is put on and merged away: none.",
        unit="tensors", region=(0.0, 0.0), measure=after_export,
    ),
)


def build(context: Context) -> None:
    frame = table(context)
    write_table(context, ARTIFACT, frame, markdown(frame))


ARTIFACT = numbered_table(
    1, "Trainable parameters and memory of AdamW, GaLore and POET for each weight matrix.",
    runs=lambda scale: [spec for by_seed in specs(scale).values() for spec in by_seed], build=build, models=(MODEL,),
    claims=CLAIMS,
)
