"""The examples that a search of rates measures on: training examples that the table's runs do not see."""

import pytest

from poet.finetuning.examples import SPLITS, divided, prepare_task, read_split
from poet.finetuning.tasks import TASKS, Example, Origin, TaskData


@pytest.fixture
def prepared(offline, tmp_path):
    """``prepared(task, **data)``: the lines of both splits, as tuples."""

    def prepare(task, **data):
        folder = tmp_path / str(sorted(data.items()))
        prepare_task(task, {"source": "offline", **data}, folder, offline)
        return [list(map(tuple, read_split(folder, split)[1])) for split in SPLITS]

    return prepare


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.classes])
@pytest.mark.parametrize(("train", "validation"), [(12, 6), (0, 0)])
def test_they_meet_neither_the_reported_examples_nor_those_that_are_trained_on(prepared, name, train, validation):
    taught, reported = prepared(name, train=train, validation=validation)
    seen, searched = prepared(name, train=train, validation=validation, split="train")
    assert seen and searched and not {*searched} & {*reported, *seen} and {*seen} <= {*taught}
    if train:
        assert seen == taught and len(searched) == validation and not {*searched} & {*taught}


@pytest.mark.parametrize(
    ("train", "validation", "found"),
    [(6, 3, (6, 6, 9)), (6, 94, (6, 6, 100)), (6, 95, (6, 90, 100)), (6, 0, (6, 90, 100)), (0, 3, (90, 90, 93)), (0, 0, (90, 90, 100)), (95, 7, (90, 90, 97))],
)
def test_a_size_of_0_and_a_split_that_is_too_small_hold_the_last_tenth_out(train, validation, found):
    end, first, last = found
    part = divided(task(range(100), []), train, validation)
    assert (part.train, part.validation) == (examples(range(end)), examples(range(first, last)))


def test_what_a_set_has_twice_is_not_measured():
    part = divided(task([0, 1, 2, 1, 3, 4, 5, 6], [4, 9]), 3, 2)
    assert (part.train, part.validation) == (examples([0, 1, 2]), examples([3, 5]))


def examples(numbers):
    return [Example((f"text {number}",), number % 2) for number in numbers]


def task(train, validation):
    return TaskData("cola", examples(train), examples(validation), Origin("real", "real: it"))
