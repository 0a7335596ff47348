"""What ``why`` says of runs, without Snakemake; tests/workflow/test_why.py has it with all of it."""

import json

from poet.launch.records import write_record
from suite.collection import RESULTS, load_suite
from suite.why import why


def test_a_trial_is_told_of_as_any_run(smoke, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    trial = next(name for name in smoke.trials if name not in smoke.runs)
    record = RESULTS / "runs" / trial / "record.json"
    monkeypatch.setattr("suite.why._pending", lambda *_: {record: "missing"})
    assert why(smoke, str(record)).splitlines()[1:] == [f"- {trial} is trained: no record yet"]


def test_what_was_never_made_is_said_to_be_missing(smoke, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("suite.why._pending", lambda *_: dict.fromkeys([smoke.dataset / "meta.json", *smoke.outputs("table8")], "missing"))
    assert why(smoke, "results/table8.csv").splitlines()[1:] == [f"- {smoke.dataset} is prepared: it is not there", "- table8 is built: not built yet"]
    monkeypatch.setattr("suite.why._pending", lambda *_: dict.fromkeys(smoke.shown("table8"), "missing"))
    assert why(smoke, "results/table8.csv").splitlines()[1:] == ["- results/table8.csv is only copied, from results/smoke: nothing is trained or built"]


def test_an_edited_record_gives_no_other_reason(smoke, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    name, spec = next(iter(smoke.trainable.items()))
    record = RESULTS / "runs" / name / "record.json"
    write_record(record, {"spec": spec.to_dict(), "spec_digest": spec.digest, "sources": {}})
    record.write_text(json.dumps(json.loads(record.read_text()) | {"spec_digest": "0"}))
    monkeypatch.setattr("suite.why._pending", lambda *_: {record: "updated"})
    assert why(smoke, str(record)).splitlines()[1:] == [f"- {name} is trained: the record cannot be read, or was edited"]


def test_a_search_of_finetuning_is_no_copy_and_a_given_model_no_run(monkeypatch):
    suite = load_suite({"scale": "paper", "seeds": [0]})
    given = next(spec.base for spec in suite.finetunings.values() if suite.given_bart(spec))
    bart = {RESULTS / "runs" / given / "record.json": "missing"}
    searches = {suite.tuned_part(base, task): "missing" for base, task in suite.finetuning_searches()[:3]}
    monkeypatch.setattr("suite.why._pending", lambda *_: bart | searches | {suite.folder / "finetuning_rates.csv": "missing"})
    (line,) = why(suite, str(suite.folder / "finetuning_rates.csv")).splitlines()[1:]
    assert line.startswith("- learning rates of finetuning are searched (cola from ") and line.endswith("snakemake says: missing")
