"""What ``status`` says of recorded runs."""

import pytest

from suite.__main__ import main
from suite.recorded.archive import archive_path, digests, write


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """``said(runs)``: what the status of smoke says where an archive has these runs, or there is none."""
    archive = archive_path("smoke", tmp_path)
    monkeypatch.setattr("suite.status.archive_path", lambda scale: archive)
    monkeypatch.setattr("suite.__main__.RESULTS", tmp_path / "results")

    def _said(runs=()):
        if runs:
            archive.parent.mkdir(parents=True, exist_ok=True)
            write(archive, runs)
        assert main(["status", "--scale", "smoke"]) == 0
        return capsys.readouterr().out

    return _said


def test_runs_that_would_be_restored_are_counted(said, specs, recorded_run):
    assert "Recorded" not in said()
    plain = [spec for spec in specs.values() if not spec.keep_weights]
    weights = next(spec for spec in specs.values() if spec.keep_weights)
    runs = [recorded_run(plain[0]), recorded_run(plain[1]), recorded_run(plain[2], training_digest="0" * 64), recorded_run(weights)]
    assert "Recorded with today's spec and training code: 2 of those not started." in said(runs)
    assert "Recorded" not in said(runs[2:])


def test_digests_are_those_of_the_runs(tmp_path, specs, recorded_run):
    runs = [recorded_run(spec) for spec in list(specs.values())[:2]]
    write(tmp_path / "runs.parquet", runs)
    assert digests(tmp_path / "runs.parquet") == {run.name: (run.spec.digest, run.record["training_digest"]) for run in runs}
    assert digests(tmp_path / "none.parquet") == {}
