"""Prepared data that are gone, or made again, train no finished run again, and let no other one be skipped."""

import base64
import json
import re

import pytest

from tests.workflow.conftest import ARTIFACT, Project

TARGET = "results/table99.csv"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A project with one artifact and its run of one seed, at a scale that keeps finished runs whatever code changes."""
    project = Project(tmp_path_factory.mktemp("trained") / "project")
    project.keep()
    (project.folder / "analyses" / "tables" / "table99.py").write_text(ARTIFACT)
    project.edit("config/scales/smoke.yaml", ", runs_per_job: 15", "")
    with open(project.folder / "config/scales/smoke.yaml", "a") as file:
        file.write("retrain: false\n")
    done = project.snakemake(TARGET, "--config", "scale=smoke", "seeds=[0]")
    assert done.returncode == 0, done.stderr
    return project


def jobs(project, *arguments):
    """How many jobs of each rule two seeds would take; none where nothing is to be done."""
    said = project.snakemake("--dry-run", TARGET, "--config", "scale=smoke", "seeds=[0,1]", *arguments)
    assert said.returncode == 0, said.stderr
    return {rule: int(count) for rule, count in re.findall(r"^(data|train_60m|table99) +(\d+)$", said.stdout + said.stderr, re.M)}


def test_a_run_that_was_killed_between_its_record_and_snakemake_s_is_trained_again(trained):
    """Its files are whole, and marked as incomplete."""
    record = trained.folder / "results/runs/smoke/60m/adamw/seed0/record.json"
    before = json.loads(record.read_text())["weights_sha256"]
    mark = base64.b64encode(str(record.relative_to(trained.folder)).encode()).decode()
    (trained.folder / ".snakemake" / "incomplete" / mark).touch()
    done = trained.snakemake(TARGET, "--config", "scale=smoke", "seeds=[0]")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "train_60m" in done.stderr and json.loads(record.read_text())["weights_sha256"] == before


def test_only_what_is_not_finished_waits_for_data(trained):
    (folder,) = (trained.folder / "data").glob("enwik8-*")
    assert jobs(trained) == {"train_60m": 1, "table99": 1}

    away = folder.rename(folder.with_name("away"))
    assert jobs(trained) == {"data": 1, "train_60m": 1, "table99": 1}
    away.rename(folder)

    with open(trained.folder / "poet/data/tokenizer.py", "a") as file:
        file.write("\nANOTHER = 1\n")
    assert jobs(trained) == {"data": 1, "train_60m": 1, "table99": 1}

    assert jobs(trained, "--forceall")["train_60m"] == 2
