"""Records and histories: atomic, exact, with errors that say what to do."""

import json
import math

import pytest

from poet.training.errors import RunError
from poet.launch.records import HISTORY_COLUMNS, read_history, read_record, write_history
from poet.launch.records import write_record


@pytest.fixture
def place(make_spec, tmp_path):
    spec = make_spec(seed=3)
    return spec, tmp_path, tmp_path / "runs" / spec.name / "record.json"


def test_a_record_is_read_back_nan_included(place):
    spec, results, path = place
    write_record(path, {"spec_digest": spec.digest, "value": 0.1, "nan": math.nan, "inf": math.inf})
    record = read_record(results, spec)
    assert record["value"] == 0.1 and math.isnan(record["nan"]) and record["inf"] == math.inf


@pytest.mark.parametrize("harm", ("missing", "cut short", "not an object", "other spec"))
def test_errors_name_the_run_and_the_command(place, harm):
    spec, results, path = place
    path.parent.mkdir(parents=True)
    text = {"cut short": '{"spec_di', "not an object": "[]", "other spec": '{"spec_digest": "abc"}'}
    if harm in text:
        path.write_text(text[harm])
    with pytest.raises(RunError) as caught:
        read_record(results, spec)
    sentence = str(caught.value)
    assert spec.name in sentence and f"snakemake --cores 1 --force {path}" in sentence
    assert f"scale={spec.scale}" in sentence and "seeds=[3]" in sentence and "\n" not in sentence


def test_history_keeps_every_digit_nan_and_empty_cells(tmp_path):
    rows = [
        {"step": 1, "train_loss": 0.1 + 0.2, "gradient_norm": math.nan},
        {"step": 2, "train_loss": math.inf},
    ]
    write_history(tmp_path / "h.csv", rows)
    first, second = read_history(tmp_path / "h.csv")
    assert tuple(first) == HISTORY_COLUMNS
    assert first["train_loss"] == 0.1 + 0.2 and math.isnan(first["gradient_norm"])
    assert first["validation_perplexity"] is None and second["train_loss"] == math.inf


def test_record_is_plain_json(place):
    _, _, path = place
    write_record(path, {"a": 1})
    assert json.loads(path.read_text()) == {"a": 1} and path.read_text().endswith("\n")
