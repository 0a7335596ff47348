"""Bad input: one sentence that names the thing and the remedy, an exit code that is not 0, no traceback.

What is refused is tested where it is read (tests/suite/test_scale.py, test_targets.py); here, that Snakemake hands it on.
"""


def refused(project, *arguments):
    """Run, expect a refusal, and return what was said."""
    done = project.snakemake("results/table2.csv", *arguments)
    said = done.stderr + done.stdout
    assert done.returncode != 0, said
    assert "Traceback" not in said
    return next(line for line in said.splitlines() if line.startswith("error: "))


def test_a_wrong_configuration(project):
    said = refused(project, "--config", "scale=big")
    assert "'big'" in said and "smoke" in said


def test_fewer_gpus_than_asked_are_taken_and_said(project, monkeypatch):
    """In a dry run, which needs no results that can be written."""
    (project.folder / "results").symlink_to("/proc")  # where not even root can write
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    done = project.snakemake("-n", "results/runs/paper/350m/adamw/seed0/record.json", "--config", "scale=paper")
    assert done.returncode == 0, done.stderr
    assert "note: runs of 350m ask for 4 GPUs and this machine shows 2: they take 2, each more micro-batches" in done.stderr
    assert "runs of 60m" not in done.stderr
    (line,) = (line for line in (done.stdout + done.stderr).splitlines() if "shard_optimizer=" in line)
    assert "gpu=2" in line.replace(" ", "").split(",")
