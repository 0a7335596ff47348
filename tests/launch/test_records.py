"""Records and histories: atomic, exact, with errors that say what to do."""

import hashlib
import json
import math
from functools import partial

import numpy as np
import pytest

from poet.training.errors import RunError
from poet.launch.records import HISTORY_COLUMNS, read_file, read_history, read_probes, read_record, write_history, write_record


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
    first, second = read_history((tmp_path / "h.csv").read_text())
    assert tuple(first) == HISTORY_COLUMNS
    assert first["train_loss"] == 0.1 + 0.2 and math.isnan(first["gradient_norm"])
    assert first["validation_perplexity"] is None and second["train_loss"] == math.inf


@pytest.mark.parametrize(("file", "read"), (("record.json", read_record), ("history.csv", partial(read_file, name="history.csv")), ("probes.npz", read_probes)))
def test_a_file_that_was_edited_is_refused_with_its_name_and_the_command(place, file, read):
    spec, results, path = place
    path.with_name("probes.npz").parent.mkdir(parents=True)
    np.savez(path.with_name("probes.npz"), steps=np.arange(3))
    probes = hashlib.sha256(path.with_name("probes.npz").read_bytes()).hexdigest()
    history = write_history(path.with_name("history.csv"), [{"step": 1, "train_loss": 5.0}])
    write_record(path, {"spec_digest": spec.digest, "validation_perplexity": 50.25, "history_sha256": history, "probes_sha256": probes})
    read(results, spec)
    edited = path.with_name(file)
    edited.write_bytes(b"\0" if file == "probes.npz" else edited.read_bytes().replace(b"50.25", b"40.25").replace(b"5.0", b"4.0"))
    with pytest.raises(RunError) as caught:
        read(results, spec)
    assert all(words in str(caught.value) for words in (str(edited), "written", f"snakemake --cores 1 --force {path}")), caught.value


def test_a_record_without_its_digest_is_refused(place):
    spec, results, path = place
    write_record(path, {"spec_digest": spec.digest})
    path.write_text(json.dumps({"spec_digest": spec.digest}))
    with pytest.raises(RunError, match="has no digest of its own: make it again"):
        read_record(results, spec)
