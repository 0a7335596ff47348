"""What the regression check is asked about runs with a fault in place, on runs whose numbers are made up."""

import math
import types

import pytest

from faults.noticed import TABLE, RecordedNumbers
from faults.workshop import ROOT
from poet.launch.records import write_record
from poet.system.errors import UserError
from suite.check.tables import read
from suite.collection import load_suite
from tests.tables import write_lines

ROWS = ("poet-fs-1_2", "adamw")


@pytest.fixture(scope="module")
def suite():
    return load_suite({"scale": "mini", "seeds": [0]})


@pytest.fixture
def numbers(suite, tmp_path):
    """Table 2 as it is recorded, with three seeds that spread by 1%."""
    lines = read(ROOT / "analyses" / "recorded" / "mini" / TABLE)
    for line in lines:
        line |= {"n": "3", "std": str(0.01 * float(line["measured"])), "seeds": "0 1 2"}
    recorded, data = tmp_path / "recorded", tmp_path / "data" / suite.dataset.name
    data.mkdir(parents=True)
    (data / "meta.json").write_text("{}")
    write_lines(recorded / TABLE, lines)
    return RecordedNumbers(suite, recorded, data.parent)


@pytest.fixture
def workshop(suite, numbers, tmp_path):
    """``workshop(change, trainable)``: trains to the recorded perplexity times one and the change."""

    def _made(change, more_trainable=0):
        lines = {line["variant"]: line for line in read(numbers.recorded / TABLE) if line["model"] == "60m"}
        trained = []

        def train(scale, model, row, seed, data, results):
            spec, line = suite.scale.run(model, row, seed), lines[row]
            trained.append((row, seed))
            record = {
                "spec_digest": spec.digest,
                "validation_perplexity": (1 + change(row, seed)) * float(line["measured"]),
                "trainable_parameters": int(line["run_trainable"]) + more_trainable,
                "total_parameters": int(line["run_parameters"]),
                "tokens": int(line["run_tokens"]),
            }
            write_record(results / "runs" / spec.name / "record.json", record)

        return types.SimpleNamespace(folder=tmp_path, train=train, trained=trained)

    return _made


def test_numbers_that_are_as_recorded_are_not_noticed(numbers, workshop):
    made = workshop(lambda row, seed: 0.01 * (seed - 1))
    cells = numbers.noticed(made, ROWS)
    assert sorted(made.trained) == sorted((row, seed) for row in ROWS for seed in range(3))
    assert cells["caught_by_check"] == "no"
    assert cells["moved_percent"] == pytest.approx(0, abs=1e-9) and 1 < cells["tolerance_percent"] < 50


@pytest.mark.parametrize("sign", (1, -1))
def test_a_number_that_moved_too_far_is_named_in_either_direction(numbers, workshop, sign):
    cells = numbers.noticed(workshop(lambda row, seed: sign * 0.4 * (row == "adamw")), ROWS)
    assert cells["caught_by_check"] == "60m, AdamW: measured"
    assert cells["number"] == "60m, AdamW" and cells["moved_percent"] == pytest.approx(sign * 40)
    assert cells["tolerance_percent"] < 40 and float(cells["found"]) == pytest.approx((1 + sign * 0.4) * float(cells["recorded"]))


def test_a_run_that_diverges_and_a_count_that_is_another_are_noticed(numbers, workshop):
    diverged = numbers.noticed(workshop(lambda row, seed: math.nan if seed == 1 else 0.0), ROWS[:1])
    assert diverged["caught_by_check"] == "60m, POET FS b=1/2: measured" and math.isnan(diverged["moved_percent"])
    counted = numbers.noticed(workshop(lambda row, seed: 0.0, more_trainable=1), ROWS[:1])
    assert counted["caught_by_check"] == "60m, POET FS b=1/2: run_trainable"


def test_a_run_that_stops_is_said(numbers, workshop):
    made = workshop(None)

    def train(scale, model, row, seed, data, results):
        raise UserError(f"{results}/runs/record.json: no such block")

    made.train = train
    assert numbers.noticed(made, ROWS) == {"caught_by_check": "a run stops: results/runs/record.json: no such block"}


def test_what_is_missing_is_said_in_a_sentence(suite, numbers, tmp_path):
    with pytest.raises(UserError, match=r"holds no prepared data: make it with `snakemake .*meta.json --config scale=mini`"):
        RecordedNumbers(suite, numbers.recorded, tmp_path / "elsewhere")
    with pytest.raises(UserError, match="table2.csv is missing: keep results of the scale with `make record` first"):
        RecordedNumbers(suite, tmp_path, tmp_path / "data")
