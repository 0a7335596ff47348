"""Which finetuning runs a changed file trains again."""

import dataclasses

import pytest

from poet.finetuning.problems import problem_of
from poet.finetuning.sources import OF_PROBLEM, finetuning_digest, finetuning_sources
from poet.launch.sources import ROOT
from tests.test_boundaries import imports

#: Of a task its examples count, which have a checksum in the record.
ELSEWHERE = ("poet.finetuning.tasks",)
TASKS = {"classification": "sst2", "summarization": "xsum", "infilling": "infilling"}


@pytest.mark.parametrize("problem", OF_PROBLEM)
def test_what_a_run_imports_of_finetuning_is_among_its_sources(problem, make_finetuning):
    spec = make_finetuning(task=TASKS[problem])
    assert problem_of(spec.task) == problem
    files = finetuning_sources(spec, "cpu")
    assert all(path.exists() for path in files)
    known = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files}
    own = [path for path in files if "finetuning" in path.parts]
    asked = {name for path in own for name in imports(path) if name.startswith("poet.finetuning.") and not name.startswith(ELSEWHERE)}
    modules = {name for name in asked if (ROOT / (name.replace(".", "/") + ".py")).exists()}
    assert modules and modules <= known, modules - known


def test_another_problem_s_files_retrain_nobody(make_finetuning):
    classification, summarization = (finetuning_sources(make_finetuning(task=task), "cpu") for task in ("sst2", "xsum"))
    named = {path.name for path in {*classification} ^ {*summarization}}
    assert named == {"metrics.py", "classification.py", "rouge.py", "bart.py", "summarization.py"}
    spec = make_finetuning(task="sst2")
    assert finetuning_digest(spec, "cpu") == finetuning_digest(dataclasses.replace(spec, task="rte"), "cpu") != finetuning_digest(make_finetuning(task="xsum"), "cpu")
