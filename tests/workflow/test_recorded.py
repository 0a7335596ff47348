"""Recorded runs in the pipeline: restored where they are as recorded, trained and explained where not."""

import shutil

RUN = "smoke/130m/adamw/seed0"
RECORD = f"results/runs/{RUN}/record.json"
RESUME = (RECORD, "--config", "scale=smoke", "seeds=[0]", "resume=recorded")
BASE = "smoke/60m/adamw/seed0"  # finetuning starts from its weights, and an archive has none
BASE_RECORD = f"results/runs/{BASE}/record.json"


def test_a_recorded_run_is_restored_and_a_stale_one_is_trained(project):
    project.edit("config/scales/smoke.yaml", ", runs_per_job: 15", "")  # one run is trained, and not fifteen
    log = project.folder / "results" / "logs" / "runs" / f"{RUN}.log"
    assert project.snakemake(RECORD, BASE_RECORD, "--config", "scale=smoke").returncode == 0
    packed = project.recorded("pack", "--scale", "smoke")
    assert packed.returncode == 0 and packed.stdout.endswith("2 runs, 2 of them new\n"), packed.stderr
    trained = (project.folder / RECORD).read_bytes()

    shutil.rmtree(project.folder / "results" / "runs")
    log.unlink()
    done = project.snakemake(BASE_RECORD, *RESUME)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "trained, and not taken from runs.parquet: its weights are asked for" in (project.folder / "results" / "logs" / "runs" / f"{BASE}.log").read_text()
    assert (project.folder / RECORD).read_bytes() == trained
    assert f"{RUN}: restored from runs.parquet" in log.read_text() and "steps" not in log.read_text()
    # As if it had been trained: there is nothing to do, whether recorded runs are asked for or not.
    assert "Nothing to be done" in (again := project.snakemake("-n", RECORD, "--config", "scale=smoke")).stdout + again.stderr

    with open(project.folder / "poet" / "training" / "schedule.py", "a") as file:
        file.write("\nANOTHER = 1\n")
    log.unlink()
    done = project.snakemake(*RESUME)
    assert done.returncode == 0, done.stderr[-2000:]
    said = log.read_text()
    assert f"{RUN}: trained, and not taken from runs.parquet: not as recorded: training code\n" in said and "6 of 6 steps" in said
    assert (project.folder / RECORD).read_bytes() != trained
