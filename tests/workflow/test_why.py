"""``python -m suite why``: what would be made again, and the file, spec or parameter that is the reason. One run is trained."""

import pytest

from tests.workflow.conftest import ARTIFACT, Project

TARGET, RUN = "results/table99.csv", "smoke/60m/adamw/seed0"


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A project with one artifact, which needs one run and is made. The last test changes it for good."""
    project = Project(tmp_path_factory.mktemp("one") / "project")
    project.keep()
    (project.folder / "analyses" / "tables" / "table99.py").write_text(ARTIFACT)
    project.edit("config/scales/smoke.yaml", ", runs_per_job: 15", "")
    done = project.snakemake(TARGET, "--config", "scale=smoke")
    assert done.returncode == 0, done.stderr[-2000:]
    return project


def asked(project, *options):
    """What ``why`` says, line by line."""
    done = project.module("suite", "why", TARGET, "--scale", "smoke", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def append(project, path):
    with open(project.folder / path, "a") as file:
        file.write("\nANOTHER = 1\n")


def test_files_of_a_run_that_are_gone_or_were_edited_are_named(one):
    folder = one.folder / "results" / "runs" / RUN
    kept = (folder / "history.csv").rename(folder / "kept")
    assert asked(one)[1:] == [f"- {RUN} is trained: history.csv is missing", "- table99 is built: its runs are trained"]
    kept.rename(folder / "history.csv")
    assert asked(one) == [f"Nothing: {TARGET} is up to date"]

    record = folder / "record.json"
    kept = record.rename(folder / "kept")
    record.write_text(kept.read_text().replace('"status": "completed"', '"status": "diverged"'))
    assert asked(one)[1:] == [f"- table99 is built: runs are newer: {RUN}"]
    kept.replace(record)


def test_a_changed_file_spec_or_parameter_is_named(one):
    append(one, "poet/training/schedule.py")
    append(one, "poet/data/tokenizer.py")
    append(one, "analyses/tables/table99.py")
    one.edit("config/scales/smoke.yaml", "weight_decay: 0.01", "weight_decay: 0.02")
    head, data, *others = asked(one, "--seeds", "[0,1]")
    assert head == f"{TARGET}, scale smoke, seeds 0, 1:" and data.endswith(" is prepared: poet/data/tokenizer.py changed")
    changed = "the spec changed: weight_decay 0.01 -> 0.02; poet/data/tokenizer.py changed, poet/training/schedule.py changed"
    assert others == [
        f"- {RUN} is trained: {changed}",
        "- smoke/60m/adamw/seed1 is trained: no record yet",
        "- table99 is built: seeds [0] -> [0, 1]; analyses/tables/table99.py changed; its runs are trained",
    ]
