"""What ``why`` says of runs, without Snakemake; tests/workflow/test_why.py has it with all of it."""

from suite.collection import RESULTS, load_suite
from suite.why import why


def test_a_trial_is_told_of_as_any_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    suite = load_suite({"scale": "smoke", "seeds": [0]})
    trial = next(name for name in suite.trials if name not in suite.runs)
    record = RESULTS / "runs" / trial / "record.json"
    monkeypatch.setattr("suite.why._pending", lambda *_: {record: "missing"})
    assert why(suite, str(record)).splitlines()[1:] == [f"- {trial} is trained: no record yet"]
