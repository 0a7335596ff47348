"""Table 1: formulas against hand counts, and what real runs held beside them."""

import dataclasses
import itertools
import math
import types

import pandas as pd
import pytest
import torch

from analyses.common.grid import MODELS
from analyses.tables.table1 import table1
from analyses.tables.table1.memory_formulas import FORMULAS, expected, published
from benchmarks.memory import held_bytes
from poet.methods import get_method
from poet.methods.contract import parse_parameters
from poet.methods.poet import POET
from poet.model import poet_layers
from poet.orthogonal import _constants
from poet.training.llama import build_llama
from poet.training.memory import count_elements
from poet.training.run import Run
from suite.scale import load_scale

BUDGET = types.SimpleNamespace(budget=0.5)


def test_printed_formulas_at_the_papers_sizes():
    fs = published(FORMULAS["poet-fs"], 512, 1376, BUDGET)
    assert (fs["trainable"], fs["total"]) == (256 * 255, 512 * 1376 + 3 * 256 * 255)
    assert published(FORMULAS["poet-fs"], 1376, 512, BUDGET) == pytest.approx(fs, nan_ok=True)  # m is the shorter side
    galore = published(FORMULAS["galore"], 1376, 512, types.SimpleNamespace(rank=128))
    assert (galore["trainable"], galore["total"]) == (512 * 1376, 512 * 1376 + 512 * 128 + 2 * 1376 * 128)
    bs = published(FORMULAS["poet-bs"], 512, 1280, types.SimpleNamespace(block_size=256))
    assert (bs["trainable"], bs["total"]) == (1792 * 255 / 2, 512 * 1280 + 3 * 1792 * 255 / 2)
    assert math.isnan(bs["state"]) and math.isnan(bs["gradients"])


PARAMETERS = {
    "adamw": {"init": "keep"},
    "galore": {"rank": 4},
    "poet-fs": {"variant": "fs", "budget": 0.25},
    "poet-bs": {"variant": "bs", "block_size": 8},
}


@pytest.mark.parametrize("key", PARAMETERS)
def test_formulas_are_what_a_real_step_holds(make_spec, data, key):
    run = Run(make_spec(method=key.partition("-")[0], parameters=PARAMETERS[key]), data, "cpu")
    run.train_step()
    for layer in run.elements:
        held = table1.held_by_shape([layer]).to_dict("index")
        assert held == {(layer["m"], layer["n"]): expected(FORMULAS[key], layer["m"], layer["n"], run.method.parameters)}
    assert set(table1.held_by_shape(run.elements).index) == {(32, 32), (32, 64), (64, 32)}


def one_step(spec):
    """Bytes in memory after a first step of a run's model (parameters, buffers, gradients, optimizer state, cached constants), and what Table 1 counts."""
    method = get_method(spec.method)
    method = method(parse_parameters(method, spec.parameters), weight_decay=spec.weight_decay)
    model = method.prepare(build_llama(spec.architecture, seed=0), 0)
    optimizers = method.optimizers(model)
    tokens = torch.arange(4)[None]
    model(input_ids=tokens, labels=tokens).loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    layers = [layer for _, layer in poet_layers(model)]
    sizes = {side.block_size for layer in layers for side in (layer.primitive_r, layer.primitive_p)}
    held = [
        *model.parameters(), *model.buffers(), *(p.grad for p in model.parameters() if p.grad is not None),
        *(v for optimizer in optimizers for state in optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)),
        *itertools.chain(*(_constants(b, layers[0].base_weight) for b in sizes)),
    ]  # fmt: skip
    return held_bytes(held), {line["layer"]: line for line in count_elements(model, optimizers)}


@pytest.mark.parametrize("model", (*MODELS, "3b"))
def test_poet_holds_no_more_than_adamw_at_any_size_of_mini(model):
    """Of the same model, in bytes; and each layer, whose indices are int64. It would notice Adam's moments of the frozen weight."""
    scale = load_scale({"scale": "mini", "seeds": [0]})
    adamw = scale.run(model, "adamw", 0)
    for row in POET.rows:
        spec = scale.run(model, row.key, 0)
        same = dataclasses.replace(adamw, architecture=spec.architecture)
        (ours, layers), (theirs, plain) = one_step(spec), one_step(same)
        assert ours <= theirs, row.key
        for name, line in layers.items():
            elements = line["weights"] + line["gradients"] + line["state"] + 2 * line["indices"]
            assert elements <= sum(plain[name][quantity] for quantity in ("weights", "gradients", "state")), (row.key, name)


def held(spec, changes=()):
    """A record of one square and one wide matrix that agrees with the formulas but for ``changes``."""
    key = next(k for k, row in table1.ROWS.items() if row == spec.variant)
    parameters = types.SimpleNamespace(**spec.parameters)
    lines = []
    for m, n in ((32, 32), (32, 32), (32, 64)):
        values = expected(FORMULAS[key], m, n, parameters)
        del values["total"]
        lines.append({"layer": "x", "m": m, "n": n, **values, **dict(changes)})
    return {"held": lines}


def test_lines_agree_and_totals_add_up(recorded):
    context = recorded(table1.ARTIFACT, held)
    table1.build(context)
    frame = pd.read_csv(context.results / "table1.csv")
    assert set(frame.agrees) == {"yes"}
    assert (frame.groupby(["method", "matrix"]).size() == 6).all() and len(frame) == 4 * 6 * 3
    for _, part in frame.groupby(["method", "quantity"]):
        by_matrix = part.set_index("matrix")
        for column in ("expected", "measured", "published"):
            total = 2 * by_matrix[column]["32 x 32"] + by_matrix[column]["32 x 64"]
            assert by_matrix[column]["whole model"] == pytest.approx(total, nan_ok=True)
        assert by_matrix.matrices.to_dict() == {"32 x 32": 2, "32 x 64": 1, "whole model": 3}
    one_b = frame[(frame.published_agrees == "no") & (frame.matrix != "whole model")]
    assert set(zip(one_b.method, one_b.matrix, strict=True)) == {("POET (FS)", "32 x 64")}
    text = (context.results / "table1.md").read_text()
    assert "| POET (FS) | b(b-1) | 32 x 32: 240 / **240** | 32 x 64: 240 / **616** | 720 / **1,096** |" in text
    assert "72 of 72 lines" in text


def test_a_line_that_holds_more_does_not_agree(recorded):
    context = recorded(table1.ARTIFACT, lambda spec: held(spec, {"state": 7} if spec.method == "galore" else {}))
    frame = table1.table(context)
    wrong = frame[frame.agrees == "no"]
    assert set(wrong.method) == {"GaLore"} and set(wrong.quantity) == {
        "optimizer state",
        "memory: weights + optimizer state",
    }


def test_the_runs_are_table_2s(recorded):
    from analyses.common.grid import grid_runs

    context = recorded(table1.ARTIFACT, held)
    known = {spec.name: spec for spec in grid_runs(context.scale)}
    assert all(known[spec.name] == spec for spec in table1.ARTIFACT.runs(context.scale))
