"""The whole DAG at smoke scale."""

import json
import os
import shutil
import time

import pandas as pd

from poet.launch.records import check_record
from tests.workflow.conftest import OF_A_KIND


def check_outputs(results, artifacts):
    for name, artifact in artifacts.items():
        for output in artifact.outputs:
            path = results / output
            assert path.stat().st_size > 0, f"{name}: {output}"
            head = path.read_bytes()[:8]
            if output.endswith(".png"):
                assert head.startswith(b"\x89PNG")
            elif output.endswith(".pdf"):
                assert head.startswith(b"%PDF")
            elif output.endswith(".csv") and artifact.in_all:
                columns = set(pd.read_csv(path).columns)
                scales = set(pd.read_csv(path).scale)
                if artifact.reads:  # it gathers what the others say
                    continue
                assert {"published", "measured", "n", "std", "unit", "scale"} <= columns, (name, columns)
                assert scales - {"paper"} == {"any" if artifact.scale_free else "smoke"}, (name, scales)


def test_an_artifact_of_each_kind_is_made(made, suite):
    assert made.first.returncode == 0, made.first.stderr[-3000:]
    check_outputs(made.folder / "results", {name: artifact for name, artifact in suite.artifacts.items() if name not in OF_A_KIND})


def test_table_2_at_this_scale_judges_nothing(made):
    results = made.folder / "results"
    table = pd.read_csv(results / "table2.csv")
    assert len(table) == 36
    assert (table.n == 1).all()
    assert not {"verdict", "result"} & set(table)
    assert (table.measured > 1).all()
    assert "fit to judge nothing" in (results / "table2.md").read_text()


def test_a_run_that_artifacts_share_is_trained_once(made, suite):
    asked = [spec for artifact in suite.artifacts.values() for spec in artifact.runs(suite.scale)]
    # Other tests train runs of their own scales in the same project: they do not count here.
    records = (path for path in (made.folder / "results" / "runs" / "smoke").rglob("record.json") if path.parent.name != "seed1000")  # trials
    assert {str(path.parent.relative_to(made.folder / "results" / "runs")) for path in records} == set(suite.specs)
    assert len(suite.runs) < 0.7 * len(asked)
    for name, spec in suite.runs.items():
        log = (made.folder / "results" / "logs" / "runs" / f"{name}.log").read_text()
        assert log.count(f"{spec.steps} of {spec.steps} steps") == 1, name


def test_each_run_left_a_whole_record(made):
    records = sorted((made.folder / "results" / "runs" / "smoke").rglob("record.json"))
    shas = set()
    for path in (path for path in records if not {"finetuned", "bart"} & set(path.parts)):
        record = json.loads(path.read_text())
        assert record["status"] == "completed"
        assert record["name"] == str(path.parent.relative_to(made.folder / "results" / "runs"))
        assert record["provenance"]["versions"]["torch"]
        assert record["cost"]["peak_memory_bytes"] < 1.5e9
        shas.add(record["data_sha256"])
        history = pd.read_csv(path.parent / "history.csv")
        assert history.step.tolist() == list(range(1, record["steps"] + 1))
        assert record["held"][0]["weights"] > 0
    assert len(shas) == 1
    assert not list((made.folder / "results" / "checkpoints").rglob("*.pt"))


def test_each_finetuning_run_left_a_whole_record(made, suite):
    assert len(suite.finetunings) == 48 + 8 + 1  # Tables 4 and 12, and the small BART's pretraining
    for name, spec in suite.finetunings.items():
        folder = made.folder / "results" / "runs" / name
        record = json.loads((folder / "record.json").read_text())
        check_record(record)
        if not spec.base:
            assert (record["status"], record["steps"]) == ("completed", 4) and (folder / "weights" / "model.safetensors").exists()
            continue
        base = json.loads((made.folder / "results" / "runs" / spec.base / "record.json").read_text())
        assert (record["status"], record["steps"], len(record["epochs"])) == ("completed", 2, 1)
        assert record["base_weights_sha256"] == base["weights_sha256"] and record["spec_digest"] == spec.digest
        assert record["examples"] == {"train": 16, "validation": 8 if spec.decoding else 16}
    assert len(list((made.folder / "data" / "tasks").glob("*/meta.json"))) == 10


def test_everything_is_built_from_recorded_runs(made, project, suite):
    shutil.copytree(made.folder / "results" / "runs", project.folder / "results" / "runs")
    assert project.recorded("pack", "--scale", "smoke").returncode == 0
    shutil.rmtree(project.folder / "results")
    built = project.recorded("build", "--scale", "smoke")
    assert built.returncode == 0, built.stderr[-3000:]
    results = project.folder / "results" / "recorded" / "smoke"
    whole = {name: artifact for name, artifact in suite.artifacts.items() if name not in ("lr_sweep", "table11")}  # trials are of no table; no times are recorded
    assert f"{len(whole)} artifacts built from {len(suite.specs)} recorded runs" in built.stdout.splitlines()[-1]
    check_outputs(results, whole)
    for name in ("table2", "table5", "figure1", "figure6"):
        assert (results / f"{name}.csv").read_bytes() == (made.folder / "results" / f"{name}.csv").read_bytes(), name
    assert "Recorded runs, not trained here: 36 of 36 (on " in (results / "table2.md").read_text()
    assert "Recorded runs, not trained here" in (results / "report.html").read_text()
    assert not (project.folder / "data" / suite.dataset.name).exists()


def test_tuning_trains_round_after_round(made):
    assert made.tuned.returncode == 0, made.tuned.stderr[-3000:]
    assert "60m adamw at 1/2: searching, 0 of 2 trials" in made.tuned.stdout
    assert "60m adamw at 1/2: censored, 2 of 2 trials" in made.tuned.stdout
    table = pd.read_csv(made.folder / "results" / "smoke" / "lr_sweep.csv")
    assert table.lr.tolist() == [0.004, 0.002] and (table.chosen == "yes").sum() == 1
    assert set(table.state) == {"censored"} and set(table.seed) == {1000} and set(table.steps) == {3}


def test_the_ladder_has_two_rungs_at_smoke_scale(made):
    ladder = pd.read_csv(made.folder / "results" / "ladder.csv")
    rungs = ladder[ladder.quantity == "validation perplexity"]
    assert set(zip(rungs.length, rungs.steps, rungs.rates)) == {("1/2", 3, "in force"), ("1", 6, "in force")}
    assert set(rungs.variant) == {"adamw", "poet-fs-1_2"} and rungs.measured.notna().all()


def test_a_second_call_does_nothing_and_is_quick_even_if_the_clock_was_ahead(made):
    (meta,) = (made.folder / "data").glob("*/meta.json")
    tomorrow = time.time() + 86400
    os.utime(meta, (tomorrow, tomorrow))
    started = time.monotonic()
    again = made.snakemake("all", "results/lr_sweep.csv", "--config", "scale=smoke")
    assert again.returncode == 0
    assert "Nothing to be done" in again.stderr + again.stdout
    assert time.monotonic() - started < 120  # 15 s on an idle machine; here the other worker is busy


def test_examples_of_finetuning_are_prepared_again_where_their_code_changed(made):
    changed = "poet/finetuning/tasks/drawing.py", 'TypeVar("T")\n', 'TypeVar("T")\nANOTHER = 1\n'
    made.edit(*changed)
    said = made.module("suite", "why", "results/table4.csv", "--scale", "smoke").stdout
    made.edit(changed[0], *changed[:0:-1])
    assert said.count("is prepared: its code or the text that it is made from changed") == 8 and "table4 is built: its runs are trained" in said


def test_the_same_command_gives_the_same_bytes(made):
    (meta,) = (made.folder / "data").glob("*/meta.json")
    tomorrow = time.time() + 86400
    os.utime(meta, (tomorrow, tomorrow))  # Snakemake deletes what is older than its input, unless a job sets the date right
    table = made.folder / "results" / "table2.csv"
    before = table.read_bytes()
    run = "results/runs/smoke/60m/poet-fs-1_2/seed0/record.json"  # runs that share its job are trained with it
    digest = json.loads((made.folder / run).read_text())["weights_sha256"]
    again = made.snakemake("--config", "scale=smoke", "--forcerun", run, "--", run, "results/table2.csv")
    assert again.returncode == 0, again.stderr[-2000:]
    assert json.loads((made.folder / run).read_text())["weights_sha256"] == digest
    assert table.read_bytes() == before
    assert meta.stat().st_mtime <= time.time()


def test_a_record_that_is_gone_is_made_again_with_what_was_made_from_it(made, suite):
    run = next(path for path in suite.records("table12") if "/xsum/" in str(path))
    record = made.folder / run
    before = json.loads(record.read_text())
    record.unlink()
    again = made.snakemake("results/table12.csv", "--config", "scale=smoke")
    assert again.returncode == 0, again.stderr[-2000:]
    assert f"files of runs are gone that table12 was made from, such as {run}" in again.stderr
    assert json.loads(record.read_text())["summaries_sha256"] == before["summaries_sha256"]
    assert made.module("suite", "verify").stdout.endswith("each whole\n")
