"""Adding an artifact touches one new file, and what the pipeline says when one cannot be made."""

ARTIFACT = """
from analyses.artifact import Artifact
from analyses.spectra import run
from analyses.tables import measured_columns, write_csv
import pandas as pd


def runs(scale):
    return [run(scale, "adamw", seed) for seed in scale.seeds]


def build(context):
    values = [context.record(spec)["validation_perplexity"] for spec in runs(context.scale)]
    write_csv(pd.DataFrame([{"published": 1.0, **measured_columns(values), "scale": context.scale.name}]), context.results / "figure99.csv")


ARTIFACT = Artifact(label="Figure 99", caption="Mine.", outputs=("figure99.csv",), runs=runs, build=build)
"""


def test_one_new_file_is_a_new_target_that_shares_its_runs(project):
    (project.folder / "analyses" / "figure99.py").write_text(ARTIFACT)
    done = project.snakemake("-n", "results/figure99.csv", "results/figure6.csv", "--config", "scale=smoke")
    assert done.returncode == 0, done.stderr[-2000:]
    said = done.stdout + done.stderr
    counts = {line.split()[0]: int(line.split()[1]) for line in said.splitlines() if len(line.split()) == 2 and line.split()[1].isdigit()}
    assert counts["figure99"] == counts["figure6"] == 1
    alone = project.snakemake("-n", "results/figure6.csv", "--config", "scale=smoke")
    said = alone.stdout + alone.stderr
    runs = [int(line.split()[1]) for line in said.splitlines() if line.startswith("train_") and len(line.split()) == 2]
    assert sum(n for name, n in counts.items() if name.startswith("train_")) == sum(runs) > 0
    everything = project.snakemake("-n", "--config", "scale=smoke")
    assert "figure99" in everything.stdout + everything.stderr


def test_an_artifact_beyond_the_scale_says_which_model_it_misses(project):
    done = project.snakemake("-n", "results/table3.csv", "--config", "scale=gpu")
    assert done.returncode != 0
    assert "error: table3 needs model 3b; scale gpu has 60m, 130m: choose another scale" in done.stderr
