"""The Slurm profile on a real Slurm: what jobs ask for, what they leave, and what becomes of those that are stopped."""

import contextlib
import csv
import json
import os
import re
import shutil
import time

import psutil
import pytest
import yaml
from poet.launch.loop import train
from poet.training.spec import RunSpec
from suite.collection import load_suite

from tests.slurm.cluster import slurm
from tests.slurm.project import Pipeline, SlurmProject

SMOKE = ("--config", "scale=smoke")
TABLE = "results/table2.csv"


def at_work(pipeline, rule):
    """The job of a rule (and run) in which a process trains, or None."""
    job = next((job["JobId"] for job in pipeline.jobs(rule) if job["JobState"] == "RUNNING"), None)
    return job if job and training(job) else None


def stoppable(pipeline, run):
    """The job of a run that has saved a checkpoint, or None."""
    saved = list((pipeline.folder / "results" / "checkpoints" / run).glob("*/*.pt"))
    return at_work(pipeline, comment(run)) if saved else None


def slow_squeue(folder, monkeypatch):
    """Have ``squeue`` take five seconds; the file that is there from the first call on."""
    folder.mkdir()
    (folder / "squeue").write_text(f'#!/bin/sh\ntouch {folder}/asked\nsleep 5\nexec {shutil.which("squeue")} "$@"\n')
    (folder / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder / "asked"


def comment(run):
    """The rule and run that the executor notes in the comment of a job."""
    return f"train_{run.split('/')[1]}_wildcards_{run.replace('/', '_')}"


def training(job):
    """The process that trains in a job, or None while there is none."""
    for process in psutil.process_iter(["cmdline", "environ"]):
        trains = ".train.py" in " ".join(process.info["cmdline"] or ())  # the script that Snakemake has made
        if trains and (process.info["environ"] or {}).get("SLURM_JOB_ID") == job:
            return process
    return None


def cancel_step(job):
    slurm("scancel", f"{job}.0")


def cancel(job):
    slurm("scancel", job)


def kill_training(job):
    training(job).kill()


def preempt(job):
    slurm("scontrol", "requeue", job)


def warn(job):
    """What Slurm does before the time limit (``--signal``), which is at least a minute."""
    slurm("scancel", "--signal=TERM", job)


#: A run of a job each, and what stops it when it has saved a checkpoint. The last one is spread over two nodes.
STOPPED = {
    "smoke/60m/adamw/seed0": cancel,
    "smoke/60m/galore/seed0": kill_training,
    "smoke/60m/poet-fs-1_2/seed0": preempt,
    "smoke/130m/adamw/seed0": warn,
}


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    """Table 2, of whose jobs a step and a whole one are cancelled; beside it longer runs, each stopped in its way."""
    folder = tmp_path_factory.mktemp("pipelines")
    table, runs = SlurmProject(folder / "table"), SlurmProject(folder / "runs")
    table.keep("table2")  # runs share jobs at this scale: those of other artifacts would take minutes
    change_scale(runs)
    with Pipeline(table, TABLE, *SMOKE) as table, contextlib.ExitStack() as later:
        table.until(lambda: [job["JobState"] for job in table.jobs("data")] == ["COMPLETED"])
        shutil.copytree(prepared(table), runs.folder / "data" / prepared(table).name)
        runs = later.enter_context(Pipeline(runs, *(f"results/runs/{run}/record.json" for run in STOPPED), *SMOKE))
        waiting = {**STOPPED, "train_350m": cancel_step, "train_1_3b": cancel}
        while waiting:
            for name in list(waiting):
                if job := (stoppable(runs, name) if name in STOPPED else at_work(table, name)):
                    waiting.pop(name)(job)
            for pipeline in (table, runs):
                assert pipeline.process.poll() is None, pipeline.output[-5000:]
            time.sleep(0.3)
        for pipeline in (table, runs):
            assert pipeline.finish() == 0, pipeline.output[-5000:]
    return table, runs


def prepared(pipeline):
    """The folder of the tokenized rows."""
    return next(path for path in (pipeline.folder / "data").iterdir() if path.name != "cache")


def undisturbed(pipeline, run, folder):
    """The record of a run as its jobs left it, and that of the same run trained in one piece, in this process."""
    record = json.loads((pipeline.folder / "results" / "runs" / run / "record.json").read_text())
    spec = RunSpec.from_dict(record["spec"])
    return record, train(spec, data=prepared(pipeline), folder=folder, checkpoints=folder / "checkpoints")


def change_scale(project):
    """Small models that train for some seconds, in a job each; a model whose runs take two nodes."""
    path = project.folder / "config" / "scales" / "smoke.yaml"
    settings = yaml.safe_load(path.read_text())
    del settings["resources"]["runs_per_job"]
    settings["models"]["60m"] |= {"steps": 800}
    settings["models"]["130m"] |= {"steps": 200, "accumulation": 2, "resources": {"nodes": 2, "processes": 2}}
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    project.edit("poet/launch/loop.py", "checkpoint_seconds: float = 60.0", "checkpoint_seconds: float = 0.5")


def test_the_table_is_that_of_undisturbed_runs(pipelines, tmp_path):
    with open(pipelines[0].folder / TABLE, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 36
    measured = sorted(float(row["measured"]) for row in rows)
    expected = []
    for path in sorted((pipelines[0].folder / "results" / "runs").rglob("record.json")):
        name = str(path.parent.relative_to(pipelines[0].folder / "results" / "runs"))
        record, whole = undisturbed(pipelines[0], name, tmp_path / name)
        assert record["weights_sha256"] == whole["weights_sha256"], name
        expected.append(whole["validation_perplexity"])
    assert measured == pytest.approx(sorted(expected), rel=1e-12)


def test_what_was_cancelled_was_submitted_again(pipelines):
    assert [job["JobState"] for job in pipelines[0].jobs("train_1_3b")] == ["CANCELLED", "COMPLETED"]
    assert [job["JobState"] for job in pipelines[0].jobs("train_350m")] == ["FAILED", "COMPLETED"]
    assert {job["JobState"] for job in pipelines[0].jobs("train_60m")} == {"COMPLETED"}


def test_jobs_ask_for_what_the_scale_says(pipelines):
    scale = load_suite({"scale": "smoke", "seeds": [0]}).scale
    for model in ("60m", "130m", "350m", "1.3b"):
        asked = scale.resources(model)
        for job in pipelines[0].jobs(f"train_{model.replace('.', '_')}"):
            assert (job["NumNodes"], job["NumCPUs"]) == ("1", str(asked["threads"]))
            assert job["MinMemoryNode"] == f"{asked['mem_mb']}M"
            assert job["TimeLimit"] == f"00:{asked['runtime']}:00"
            assert job["Partition"] == "main"
            assert job["Requeue"] == "1"
    assert pipelines[0].jobs("data")


def test_cheap_rules_are_not_submitted(pipelines):
    assert {job["Comment"].removeprefix("rule_").partition("_")[0] for job in pipelines[0].jobs()} == {"data", "train"}


def test_failed_jobs_leave_their_log_under_the_rules_name(pipelines):
    failed = next(job for job in pipelines[0].jobs("train_350m") if job["JobState"] == "FAILED")
    assert f"results/logs/slurm/rule_train_350m_0/{failed['JobId']}.log" in failed["StdOut"]
    assert "143" in (pipelines[0].folder / failed["StdOut"]).read_text()


@pytest.mark.parametrize("run", STOPPED)
def test_a_stopped_run_goes_on_and_ends_as_if_nothing_had_been(pipelines, run, tmp_path):
    record, whole = undisturbed(pipelines[1], run, tmp_path)
    log = (pipelines[1].folder / "results" / "logs" / "runs" / f"{run}.log").read_text()
    steps = [int(step) for step in re.findall(r"goes on from step (\d+)", log)]
    assert len(steps) == 1
    assert 0 < steps[0] < record["steps"]
    if pipelines[1].jobs(comment(run))[0]["NumNodes"] == "1":  # two nodes round sums in another order
        assert record["weights_sha256"] == whole["weights_sha256"]
    assert record["validation_perplexity"] == pytest.approx(whole["validation_perplexity"], rel=1e-3)
    folders = (pipelines[1].folder / "results" / "runs" / run, tmp_path)
    histories = [(folder / "history.csv").read_text().splitlines() for folder in folders]
    assert [row.partition(",")[0] for row in histories[0]] == [row.partition(",")[0] for row in histories[1]]


@pytest.mark.parametrize("run", STOPPED)
def test_a_stopped_run_is_submitted_again_or_waits_in_its_place(pipelines, run):
    jobs = pipelines[1].jobs(comment(run))
    assert (len(jobs), jobs[-1]["Restarts"]) == ((1, "1") if STOPPED[run] is preempt else (2, "0"))
    assert jobs[-1]["JobState"] == "COMPLETED"


def test_paper_runs_ask_for_the_paper_s_gpus_wait_and_go_with_ctrl_c(tmp_path, monkeypatch):
    query = slow_squeue(tmp_path / "bin", monkeypatch)
    project = SlurmProject(tmp_path / "project")
    suite = load_suite({"scale": "paper", "seeds": [0]})
    (project.folder / suite.dataset).mkdir(parents=True)
    for name in ("meta.json", "train.npy", "validation.npy"):
        (project.folder / suite.dataset / name).touch()
    with Pipeline(project, TABLE, "--config", "scale=paper") as pipeline:
        pipeline.until(lambda: len(pipeline.jobs()) == 36)
        for model, gpus in {"60m": 1, "130m": 1, "350m": 4, "1.3b": 8}.items():
            jobs, asked = pipeline.jobs(f"train_{model.replace('.', '_')}"), suite.scale.resources(model)
            assert len(jobs) == 9
            for job in jobs:
                assert f"gres/gpu={gpus}" in job["TRES"].split(",") or job["TresPerJob"] == f"gres:gpu:{gpus}", job
                assert job["NumNodes"] == "1-1"
                assert job["NumCPUs"] == str(asked["threads"])
                assert float(job["MinMemoryNode"].removesuffix("G")) == pytest.approx(asked["mem_mb"] / 1024, abs=0.01)
                days, hours = divmod(asked["runtime"] // 60, 24)
                assert job["TimeLimit"] == f"{days}-{hours:02}:00:00"
                assert f"/rule_train_{model.replace('.', '_')}/paper_{model}_" in job["StdOut"]
        query.unlink(missing_ok=True)
        pipeline.until(query.exists)  # while it asks, Snakemake's own Ctrl-C cancels nothing
        pipeline.interrupt()
        assert pipeline.finish() != 0
        assert {job["JobState"] for job in pipeline.jobs()} == {"CANCELLED"}


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ("partition: nope, gpus: 0", ("partition=nope", "nvalid partition")),
        ("gpus: 9, nodes: 1", ("gpu=9", "Requested node configuration is not available")),
        ("partition: brief, gpus: 0", ("partition=brief", "its partition gives a job 10 minutes")),
    ],
)
def test_what_slurm_refuses_is_one_sentence_and_no_job(tmp_path, resources, words):
    project = SlurmProject(tmp_path / "project")
    project.edit("config/scales/smoke.yaml", "gpus: 0", resources)
    project.edit("config/scales/smoke.yaml", ", runs_per_job: 15", "")
    done = project.snakemake(TABLE, *SMOKE)
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr[-3000:]
    assert all(word in errors[0] for word in ("rule train_", *words)), errors
    assert "Traceback" not in done.stderr
    assert "sbatch call" not in done.stderr


def test_jobs_of_a_pipeline_that_was_killed_are_named_and_nothing_begins_beside_them(tmp_path):
    project = SlurmProject(tmp_path / "project")
    left = slurm("sbatch", "--parsable", "--hold", "--comment=rule_train_60m_wildcards_run", f"--chdir={project.folder}", "--wrap=true").strip()
    done = project.snakemake("results/table8.csv", *SMOKE)
    slurm("scancel", left)
    assert done.returncode != 0
    assert f"error: 1 jobs of a pipeline that was killed are in Slurm's queue: wait until they have ended, or scancel {left}; then call again" in done.stderr.splitlines()
