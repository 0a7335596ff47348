"""Adding an artifact touches one new file."""

ARTIFACT = """
import pandas as pd

from analyses.common.layout import measured_columns, write_csv
from analyses.figures.common.spectra import run
from suite.artifact import Artifact


def runs(scale):
    return [run(scale, "adamw", seed) for seed in scale.seeds]


def build(context):
    values = [context.record(spec)["validation_perplexity"] for spec in runs(context.scale)]
    write_csv(pd.DataFrame([{"published": 1.0, **measured_columns(values), "scale": context.scale.name}]), context.results / "figure99.csv")


ARTIFACT = Artifact(label="Figure 99", caption="Mine.", outputs=("figure99.csv",), runs=runs, build=build)
"""


def jobs(project, *arguments):
    """Jobs by rule, as a dry run counts them."""
    done = project.snakemake("-n", *arguments, "--config", "scale=smoke")
    assert done.returncode == 0, done.stderr[-2000:]
    words = (line.split() for line in (done.stdout + done.stderr).splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}


def trained(counts):
    return sum(number for rule, number in counts.items() if rule.startswith("train_"))


def test_one_new_file_is_a_new_target_that_shares_its_runs(project):
    (project.folder / "analyses" / "figures" / "figure99.py").write_text(ARTIFACT)
    both = jobs(project, "results/figure99.csv", "results/figure6.csv")
    alone = jobs(project, "results/figure6.csv")
    assert both["figure99"] == both["figure6"] == alone["figure6"] == 1
    assert trained(both) == trained(alone) > 0
    assert "figure99" in jobs(project)
