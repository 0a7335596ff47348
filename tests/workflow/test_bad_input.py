"""Each bad input: one sentence that names the thing and the remedy, an exit code that is not 0, no traceback."""

import pytest
import yaml


def refused(project, *arguments):
    """Run, expect a refusal, and return what was said."""
    done = project.snakemake("-n", "results/table2.csv", *arguments)
    said = done.stderr + done.stdout
    assert done.returncode != 0, said
    assert "Traceback" not in said
    return next(line for line in said.splitlines() if line.startswith("error: "))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("scale=big", ("'big'", "smoke")),
        ("sede=1", ("'sede'", "seeds")),
        ("seeds=[0,x]", ("seeds.1", "'x'", "integer")),
        ("seeds=0,1", ("seeds", "'0,1'", "array")),
        ("seeds=[0,0]", ("seeds", "stands twice in [0, 0]")),
        ("seeds=1", ("seeds", "not 1", "such as [0, 1, 2]")),
        ("seeds=[-1]", ("seeds.0", "not -1", "0 or more")),
    ],
)
def test_a_wrong_configuration(project, config, words):
    said = refused(project, "--config", config)
    assert all(word in said for word in words), said


def test_fewer_gpus_than_asked_are_taken_and_said(project, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    done = project.snakemake("-n", "results/runs/paper/350m/adamw/seed0/record.json", "--config", "scale=paper")
    assert done.returncode == 0, done.stderr
    assert "note: runs of 350m ask for 4 GPUs and this machine shows 2: they take 2, each more micro-batches" in done.stderr
    assert "runs of 60m" not in done.stderr
    (line,) = (line for line in (done.stdout + done.stderr).splitlines() if "shard_optimizer=" in line)
    assert "gpu=2" in line.replace(" ", "").split(",")


def test_results_that_cannot_be_written_are_refused_before_anything_is_trained(project):
    (project.folder / "results").symlink_to("/proc")  # where not even root can write
    said = refused(project, "--config", "scale=smoke")
    assert "nothing can be written to" in said and str(project.folder / "results") in said


@pytest.mark.parametrize("name", ["mini/7b/adamw/seed0", "mini/60m/sgd/seed0", "mini/60m/adamw/seed7"])
def test_an_unknown_run_is_refused_with_those_that_there_are(project, name):
    said = refused(project, f"results/runs/{name}/record.json")
    assert all(word in said for word in (name, "60m", "1.3b", "adamw", "poet-fs-1_2", "[0]")), said


def test_a_block_size_that_does_not_divide_fails_before_anything_runs(project):
    project.edit("config/scales/smoke.yaml", "divisible: 80}", "divisible: 84}")
    said = refused(project, "--config", "scale=smoke")
    assert all(word in said for word in ("scale smoke", "poet-bs-b256", "model 60m", "mlp", "16 does not divide dimension 84")), said


def test_data_and_model_that_disagree_fail_in_one_sentence(project):
    path = project.folder / "config" / "scales" / "smoke.yaml"
    settings = yaml.safe_load(path.read_text())
    settings["vocabulary"] = 512
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    done = project.snakemake("results/runs/smoke/60m/adamw/seed0/record.json", "--config", "scale=smoke")
    assert done.returncode != 0
    said = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert "vocabulary of 1024" in said
    assert "wants 64 and 512" in said
