"""Which finetuning runs a changed file trains again."""

import shutil

import pytest

from poet.finetuning.problems import problem_of
from poet.finetuning.sources import OF_PROBLEM, finetuning_digest, finetuning_files, finetuning_sources
from poet.launch.sources import ROOT
from tests.test_boundaries import imports

#: Of a task its examples count, which have a checksum in the record, and its own files; errors and checksums change no number.
ELSEWHERE = ("poet.finetuning.tasks", "poet.data.errors", "poet.data.files")
TASKS = {"classification": "sst2", "summarization": "xsum", "infilling": "infilling"}


@pytest.mark.parametrize("problem", OF_PROBLEM)
def test_what_a_run_imports_of_finetuning_is_among_its_sources(problem, make_finetuning):
    spec = make_finetuning(task=TASKS[problem])
    assert problem_of(spec.task) == problem
    files = finetuning_sources(spec, "cpu")
    assert all(path.exists() for path in files)
    known = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files}
    own = [path for path in files if "finetuning" in path.parts]
    asked = {name for path in own for name in imports(path) if name.startswith(("poet.finetuning.", "poet.data.")) and not name.startswith(ELSEWHERE)}
    modules = {name for name in asked if (ROOT / (name.replace(".", "/") + ".py")).exists()}
    assert modules and modules <= known, modules - known


def test_another_problem_s_files_retrain_nobody(make_finetuning):
    classification, summarization = (finetuning_sources(make_finetuning(task=task), "cpu") for task in ("sst2", "xsum"))
    named = {path.name for path in {*classification} ^ {*summarization}}
    assert named == {"metrics.py", "classification.py", "benchmark.py", "sst2.py", "rouge.py", "bart.py", "summarization.py", "xsum.py"}


@pytest.mark.parametrize(
    ("file", "line", "trained"),
    [
        ("poet/data/tokenizer.py", "another = 1", {"cola", "sst2", "xsum", "infilling"}),
        ("poet/finetuning/tasks/contract.py", "another = 1", {"cola", "sst2", "xsum"}),
        ("poet/finetuning/tasks/glue/benchmark.py", "another = 1", {"cola", "sst2"}),
        ("poet/finetuning/tasks/glue/cola.py", "another = 1", {"cola"}),
        ("poet/finetuning/tasks/drawing.py", "another = 1", set()),  # the examples say what it changes
        ("poet/finetuning/tasks/contract.py", "# another", set()),
        ("requirements.lock", "tokenizers==0", {"cola", "sst2", "xsum", "infilling"}),
        ("requirements.lock", "scikit-learn==0", {"cola", "sst2"}),
        ("requirements.lock", "scipy==0", {"cola", "sst2"}),
        ("requirements.lock", "rouge_score==0", {"xsum"}),
        ("requirements.lock", "nltk==0", {"xsum"}),
        ("requirements.lock", "seaborn==0", set()),
    ],
)
def test_a_line_trains_again_whose_numbers_depend_on_it(file, line, trained, make_finetuning, tmp_path):
    shutil.copytree(ROOT / "poet", tmp_path / "poet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    with open(tmp_path / file, "a") as changed:
        changed.write(f"\n{line}\n")
    specs = [make_finetuning(task=task) for task in ("cola", "sst2", "xsum", "infilling")]
    assert {spec.task for spec in specs if finetuning_digest(spec, "cpu", tmp_path) != finetuning_digest(spec, "cpu")} == trained


def test_the_digests_of_single_files_name_the_pinned_versions(make_finetuning):
    """These are what ``make why`` compares."""
    lock = [finetuning_files(make_finetuning(task=task), "cpu")["requirements.lock"] for task in ("cola", "sst2", "xsum", "infilling")]
    assert lock[0] == lock[1] and len({*lock}) == 3
