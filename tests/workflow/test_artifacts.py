"""Adding an artifact touches one new file."""

from tests.workflow.conftest import ARTIFACT


def jobs(project, *arguments):
    """Jobs by rule, as a dry run counts them."""
    done = project.snakemake("-n", *arguments, "--config", "scale=smoke")
    assert done.returncode == 0, done.stderr[-2000:]
    words = (line.split() for line in (done.stdout + done.stderr).splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}


def trained(counts):
    return sum(number for rule, number in counts.items() if rule.startswith("train_"))


def test_one_new_file_is_a_new_target_that_shares_its_runs(project):
    (project.folder / "analyses" / "tables" / "table99.py").write_text(ARTIFACT)
    project.edit("config/scales/smoke.yaml", ", runs_per_job: 15", "")  # a run more would be a job more
    both = jobs(project, "results/table99.csv", "results/table2.csv")
    assert both["table99"] == both["table2"] == 1 and trained(both) == 36  # those of Table 2, and no more
