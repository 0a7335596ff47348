"""Recorded runs in the pipeline: restored where they are as recorded, trained and explained where not; everything is built from them."""

import os
import shutil
import subprocess
import sys

import pytest

RUN = "smoke/60m/adamw/seed0"
RECORD = f"results/runs/{RUN}/record.json"
RESUME = (RECORD, "--config", "scale=smoke", "resume=recorded")


def recorded(project, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(project.folder)}
    command = [sys.executable, "-m", "suite.recorded", *arguments]
    return subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, text=True)


def test_a_recorded_run_is_restored_and_a_stale_one_is_trained(project):
    project.edit("config/scales/smoke.yaml", ", runs_per_job: 15", "")  # one run is trained, and not fifteen
    log = project.folder / "results" / "logs" / "runs" / f"{RUN}.log"
    refused = project.snakemake(*RESUME)
    assert refused.returncode != 0 and "error: there are no recorded runs in" in refused.stderr and "Traceback" not in refused.stderr

    assert project.snakemake(RECORD, "--config", "scale=smoke").returncode == 0
    packed = recorded(project, "pack", "--scale", "smoke")
    assert packed.returncode == 0 and packed.stdout.endswith("1 runs, 1 of them new\n"), packed.stderr
    trained = (project.folder / RECORD).read_bytes()

    shutil.rmtree(project.folder / "results" / "runs")
    log.unlink()
    done = project.snakemake(*RESUME)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (project.folder / RECORD).read_bytes() == trained
    assert f"{RUN}: restored from runs.parquet" in log.read_text() and "steps" not in log.read_text()
    # As if it had been trained: there is nothing to do, whether recorded runs are asked for or not.
    assert "Nothing to be done" in (again := project.snakemake("-n", RECORD, "--config", "scale=smoke")).stdout + again.stderr

    with open(project.folder / "poet" / "training" / "schedule.py", "a") as file:
        file.write("\n# another line\n")
    log.unlink()
    done = project.snakemake(*RESUME)
    assert done.returncode == 0, done.stderr[-2000:]
    said = log.read_text()
    assert f"{RUN}: trained, and not taken from runs.parquet: not as recorded: training code\n" in said and "6 of 6 steps" in said
    assert (project.folder / RECORD).read_bytes() != trained


@pytest.mark.parametrize("value", ("yes", "Recorded"))
def test_another_value_of_resume_is_refused(project, value):
    done = project.snakemake("-n", RECORD, "--config", "scale=smoke", f"resume={value}")
    assert done.returncode != 0 and "error: config: resume" in done.stderr and "Traceback" not in done.stderr


def test_everything_is_built_from_recorded_runs(made, project, suite):
    shutil.copytree(made.folder / "results" / "runs", project.folder / "results" / "runs")
    assert recorded(project, "pack", "--scale", "smoke").returncode == 0
    shutil.rmtree(project.folder / "results")
    built = recorded(project, "build", "--scale", "smoke")
    assert built.returncode == 0, built.stderr[-3000:]
    results = project.folder / "results" / "recorded" / "smoke"
    assert f"{len(suite.artifacts)} artifacts built from {len(suite.runs)} recorded runs" in built.stdout.splitlines()[-1]
    for name, artifact in suite.artifacts.items():
        assert all((results / output).stat().st_size for output in artifact.outputs), name
    for name in ("table2", "table5", "figure1", "figure6"):
        assert (results / f"{name}.csv").read_bytes() == (made.folder / "results" / f"{name}.csv").read_bytes(), name
    assert "Recorded runs, not trained here: 36 of 36 (on " in (results / "table2.md").read_text()
    assert "Recorded runs, not trained here" in (results / "report.html").read_text()
    assert not (project.folder / "data" / suite.dataset.name).exists()


def test_what_lacks_a_run_is_named_and_the_rest_is_built(made, project):
    shutil.copytree(made.folder / "results" / "runs" / "smoke" / "60m", project.folder / "results" / "runs" / "smoke" / "60m")
    assert recorded(project, "pack", "--scale", "smoke").returncode == 0
    built = recorded(project, "build", "--scale", "smoke")
    assert built.returncode == 1, built.stderr[-3000:]
    *reasons, last = built.stdout.splitlines()
    assert any(line.startswith("not built: table2: 27 of its 36 runs are missing, such as smoke/1.3b/") for line in reasons)
    assert last.endswith(f"; {len(reasons)} not, for the reasons above") and "report.html" in last
    results = project.folder / "results" / "recorded" / "smoke"
    assert not (results / "table2.csv").exists() and (results / "figures" / "figure5.png").exists()
    assert "Table 2 is not here: 27 of its 36 runs are missing" in (results / "report.html").read_text()
