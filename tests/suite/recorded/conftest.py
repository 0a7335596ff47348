"""Runs that were never trained, with files that belong together."""

import copy
import json

import pytest

from poet.finetuning.sources import finetuning_digest
from poet.launch.records import write_history, write_record
from poet.launch.sources import training_digest
from suite.recorded.run import checked

ROWS = "r" * 64
WHERE = {
    "commit": "a" * 40,
    "dirty": False,
    "versions": {"torch": "2.13.0"},
    "machine": {"cpu": "A CPU"},
    "device": "cpu (1 threads)",
}


def write_meta(folder, rows=ROWS):
    """``meta.json`` of prepared data with a digest of its train rows, and that of the validation rows that all runs here have."""
    folder.mkdir(exist_ok=True)
    (folder / "meta.json").write_text(json.dumps({"splits": {"train": {"sha256": rows}, "validation": {"sha256": "v" * 64}}}))


def finetuning_record(spec):
    """The record of a finetuning run, without its own digest."""
    return {
        "status": "completed", "name": spec.name, "spec": spec.to_dict(), "spec_digest": spec.digest,
        "training_digest": finetuning_digest(spec, "cpu"), "metric": 0.5, "train_sha256": "e" * 64, "validation_sha256": "v" * 64,
        "base_weights_sha256": "w" * 64, "provenance": WHERE,
    }  # fmt: skip


@pytest.fixture(scope="session")
def specs(smoke):
    """Runs of the smoke scale by model and setting, seed 0."""
    return {f"{spec.model}/{spec.variant}": spec for spec in smoke.runs.values() if spec.seed == 0}


@pytest.fixture
def write_run():
    """``write_run(results, spec, **changes)``: the files of a run; changes are of its record, which is sealed afterwards."""

    def _write(results, spec, loss=5.0, **changes):
        folder = results / "runs" / spec.name
        record = {
            "status": "completed",
            "name": spec.name,
            "spec": spec.to_dict(),
            "spec_digest": spec.digest,
            "training_digest": training_digest(spec.method, "cpu"),
            "validation_perplexity": float("nan"),
            "data_sha256": ROWS,
            "validation_sha256": "v" * 64,
            "provenance": copy.deepcopy(WHERE),
            "history_sha256": write_history(folder / "history.csv", [{"step": 1, "train_loss": loss}]),
            **changes,
        }
        write_record(folder / "record.json", record)
        return folder

    return _write


@pytest.fixture
def recorded_run(write_run, tmp_path_factory):
    """``recorded_run(spec, origin, **changes)``: the same, read back and checked."""

    def _make(spec, origin="", **changes):
        folder = write_run(tmp_path_factory.mktemp("run"), spec, **changes)
        return checked({path.name: path.read_bytes() for path in folder.iterdir()}, origin)

    return _make
