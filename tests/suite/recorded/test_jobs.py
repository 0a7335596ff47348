"""Jobs: what was finished outlives a stopped job or pipeline, and changed code trains nothing."""

import hashlib
import os
import runpy
import shutil
import types

import pytest

from poet.launch.records import write_record
from poet.training.errors import RunError
from suite import jobs
from suite.jobs import check_code
from tests.suite.recorded.conftest import write_meta


@pytest.fixture
def data(tmp_path):
    write_meta(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def finished_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "FINISHED", tmp_path / "finished")


def take_back(spec, folder, data, known=("today's",)):
    return jobs.take_back(spec, folder, known=list(known), device="cpu", data=data)


@pytest.mark.parametrize("links", [True, False])
def test_a_finished_run_is_taken_back_until_a_pipeline_succeeds(specs, write_run, data, tmp_path, monkeypatch, links):
    if not links:  # as on a file system without them
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError))
    spec = next(iter(specs.values()))
    folder = write_run(tmp_path, spec)
    (folder / "weights").mkdir()
    (folder / "weights" / "config.json").write_text("{}")
    files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
    jobs.keep(spec, folder)
    for _ in range(2):  # the next call may be stopped, too
        (folder / "record.json").unlink()  # as Snakemake does where the job fails, or where a pipeline was killed before the job's end
        assert take_back(spec, folder, data)
        assert {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")} == files
        jobs.keep(spec, folder)
    record = f"results/runs/{spec.name}/record.json"
    jobs.forget_finished(["results/smoke/table8.csv", record.replace("seed0", "seed1")])  # of a pipeline that does not ask for the run
    assert take_back(spec, folder, data)
    monkeypatch.chdir(tmp_path)
    jobs.forget_finished([record])  # of one that ended before the run's job, as with --until
    assert take_back(spec, folder, data)
    (tmp_path / record).parent.mkdir(parents=True)
    (tmp_path / record).touch()
    jobs.forget_finished([record])
    assert not take_back(spec, folder, data) and not (tmp_path / "finished").exists()


def test_a_run_that_is_forced_is_not_taken_back(specs, write_run, data, tmp_path):
    """Else ``--forcerun`` would give the old files."""
    forced, other = list(specs.values())[:2]
    folders = {spec: write_run(tmp_path, spec) for spec in (forced, other)}
    for spec, folder in folders.items():
        jobs.keep(spec, folder)
    reasons = {}
    for spec in folders:
        job = types.SimpleNamespace(output=[f"results/runs/{spec.name}/{file}" for file in ("record.json", "history.csv")])
        reasons[id(job)] = job, types.SimpleNamespace(forced=spec is forced)
    dag = types.SimpleNamespace(needrun_jobs=lambda: [job for job, _ in reasons.values()], reason=lambda job: reasons[id(job)][1])
    jobs.forget_forced(dag)
    assert [take_back(spec, folder, data) for spec, folder in folders.items()] == [False, True]


def test_a_run_that_cannot_be_kept_is_finished_all_the_same(specs, write_run, data, tmp_path, capfd):
    spec = next(iter(specs.values()))
    folder = write_run(tmp_path, spec)
    (tmp_path / "finished").write_text("no folder")
    jobs.keep(spec, folder)
    assert f"{spec.name}: finished, but no second copy could be kept in " in capfd.readouterr().err and (folder / "record.json").exists()
    assert not take_back(spec, folder, data)


@pytest.mark.parametrize("name", ["history.csv", "weights/model.safetensors"])
def test_files_that_are_not_those_of_the_record_are_not_taken_back(specs, write_run, data, tmp_path, name):
    spec = next(iter(specs.values()))
    weights = {"model.safetensors": hashlib.sha256(b"weights").hexdigest()}
    folder = write_run(tmp_path, spec, weights_files=weights)
    (folder / "weights").mkdir()
    (folder / "weights" / "model.safetensors").write_bytes(b"weights")
    jobs.keep(spec, folder)
    assert take_back(spec, tmp_path / "back", data)
    kept = tmp_path / "finished" / spec.name / name
    kept.write_bytes(kept.read_bytes() + b"1,2\n")
    assert not take_back(spec, tmp_path / "back", data)


@pytest.mark.parametrize("changes", [{"training_digest": "other"}, {"data_sha256": "other"}, {"spec_digest": "other"}])
def test_one_of_other_code_rows_or_spec_is_trained_again(specs, write_run, data, tmp_path, changes):
    spec = next(iter(specs.values()))
    folder = write_run(tmp_path, spec, **changes)
    jobs.keep(spec, folder)
    shutil.rmtree(folder)
    assert not take_back(spec, folder, data) and not folder.exists()
    assert take_back(spec, folder, data, known=()) == ("training_digest" in changes)  # ``retrain: false``


def test_an_edited_or_damaged_record_is_not_taken_back(specs, write_run, data, tmp_path):
    spec = next(iter(specs.values()))
    jobs.keep(spec, folder := write_run(tmp_path, spec))
    record = tmp_path / "finished" / spec.name / "record.json"
    for text in (record.read_text().replace("completed", "diverged"), "{"):
        record.write_text(text)
        assert not take_back(spec, folder, data)


def test_code_that_changed_since_the_pipeline_began_trains_nothing():
    check_code([], "today's")
    check_code(["of the data", "today's"], "today's")
    with pytest.raises(RunError, match="the code was changed since this pipeline began"):
        check_code(["of the data", "yesterday's"], "today's")


@pytest.mark.parametrize("script", ["finetune", "finetuning_rates"])
def test_nothing_is_finetuned_from_an_edited_record(script, repository, monkeypatch, tmp_path, capfd):
    """The loop itself takes the digest of the pretrained weights from there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(repository / "workflow" / "scripts")
    for name in ("OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "1")
    write_record(tmp_path / "record.json", {"weights_sha256": "0"})
    (tmp_path / "record.json").write_text((tmp_path / "record.json").read_text().replace('"0"', '"1"'))
    base, rows = ("record.json", "meta.json") if script == "finetuning_rates" else (["record.json"], ["meta.json"])
    given = types.SimpleNamespace(base=base, rows=rows, task="meta.json")
    snakemake = types.SimpleNamespace(input=given, log=["log"], threads=1, rule=script, resources=types.SimpleNamespace(gpu=0), config={})
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(repository / "workflow" / "scripts" / f"{script}.py"), {"snakemake": snakemake})
    assert "record.json cannot be read as a record, or was edited: remove it" in (tmp_path / "log").read_text()
