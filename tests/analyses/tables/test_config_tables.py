"""Tables 8, 9 and 10: printed against configured, cell by cell."""

from dataclasses import replace

import pytest
from analyses.common.paper_scale import paper_scale
from analyses.common.published import cell, read_published
from analyses.tables import table8, table9
from analyses.tables.common.config_tables import compare, hyperparameter_table, hyperparameters, markdown, poet_runs
from analyses.tables.table8 import UNITS, architecture
from suite.context import Context
from suite.scale import load_scale


def differing(frame):
    return [tuple(line) for line in frame[frame.agrees == "no"][["model", "spec", "parameter", "published", "measured"]].values]


def test_table_9_agrees_but_for_the_batch_of_130m():
    frame = hyperparameter_table("table9", "fs", table9.KNOWN_DIFFERENCES)
    assert len(frame) == 72
    assert differing(frame) == [("130m", f"b=1/{d}", "batch size", 128, 256) for d in (2, 4, 8)]
    assert all("40B" in reason for reason in frame[frame.agrees == "no"].reason)


def test_the_reason_for_130m_holds():
    tokens = {"60m": 30e9, "130m": 40e9, "350m": 40e9, "1.3b": 50e9}  # head of Table 2
    for name in ("table9", "table10"):
        for row in read_published(name).to_dict("records"):
            rows = cell(row["batch size"]) * cell(row["grad acc."]) * cell(row["# GPU"])
            enough = rows * 256 * cell(row["training steps"]) >= tokens[row["model"]]
            assert (rows, enough) == ((256, False) if (name, row["model"]) == ("table9", "130m") else (512, True))
    assert paper_scale().run("130m", "poet-fs-1_2", 0).batch_rows == 512


def test_columns_are_read_from_the_run():
    spec = paper_scale().run("350m", "poet-bs-b64", 0)
    assert hyperparameters(spec, 4) == {
        "# GPU": 4, "lr (base)": 5e-3, "lr (POET)": 4e-3, "training steps": 400_000, "batch size": 128, "grad acc.": 1,
    }
    changed = replace(spec, steps=7, batch_rows=96, accumulation=2, parameters={**spec.parameters, "lr": 0.5, "poet_scale": 0.5})
    assert hyperparameters(changed, 2) == {
        "# GPU": 2, "lr (base)": 0.5, "lr (POET)": 2e-3, "training steps": 7, "batch size": 48, "grad acc.": 1,
    }
    assert hyperparameters(changed, 4)["grad acc."] == 0.5


def test_specifications_come_from_the_runs_parameters():
    scale = paper_scale()
    fs, bs = poet_runs(scale, "60m", "fs"), poet_runs(scale, "60m", "bs")
    assert set(fs) == {"b=1/8", "b=1/4", "b=1/2"}
    assert set(bs) == {"b=64", "b=128", "b=256"}
    assert fs["b=1/4"].parameters["budget"] == 0.25
    assert bs["b=128"].parameters["block_size"] == 128


@pytest.mark.parametrize(("printed", "value"), [("300,000", 300_000), ("1e-2", 0.01), ("4e-3", 0.004), ("64", 64)])
def test_printed_cells_are_numbers(printed, value):
    assert cell(printed) == value
    assert type(cell(printed)) is type(value)


def test_a_difference_shows_both_numbers_and_its_reason():
    def configured(model, _):
        return architecture(model) | ({"Number of hidden layers": 9} if model == "60m" else {})

    frame = compare("table8", configured, UNITS, {})
    assert differing(frame) == [("60m", "", "Number of hidden layers", 8, 9)]
    text = markdown(frame, table8.ARTIFACT, ("parameter",), "model", ["A note."])
    assert "| Number of hidden layers | 8 / **9** | 12 | 24 | 24 |" in text
    assert "- 15 of 16 printed cells agree" in text
    assert "- Llama 60M, Number of hidden layers (1 of the cells): Not explained." in text
    assert text.endswith("- A note.\n")


def test_the_other_intermediate_dimensions_stand_below_table_8(tmp_path):
    table8.build(Context(load_scale({"scale": "smoke", "seeds": [0]}), tmp_path))
    assert "1376 (60m), 2048 (130m), 2736 (350m), 5464 (1.3b)" in (tmp_path / "table8.md").read_text()
