"""The searches for the rates of finetuning."""

from suite.finetuning import METHODS_OF_TABLE4, bases
from suite.tuning.finetuning import trial, tune


def test_trials_have_examples_of_their_own_that_the_workflow_prepares(smoke):
    for base, task in smoke.finetuning_searches():
        spec = trial(smoke.scale, base, task, "oft", 0.01)
        assert spec.data == {"source": "offline", "train": 16, "validation": 16, "split": "train"} and spec.seed == smoke.scale.protocol.seed
        assert smoke.examples(spec) == smoke.searched_task(task)
        assert smoke.task_folders[str(smoke.searched_task(task))] == (task, spec.data)
    reported = [spec for spec in smoke.finetunings.values() if spec.base]
    assert all("split" not in spec.data and smoke.task_folders[str(smoke.examples(spec))] == (spec.task, spec.data) for spec in reported)
    assert not {smoke.examples(spec) for spec in reported} & {smoke.searched_task(task) for _, task in smoke.finetuning_searches()}


def test_a_search_trains_its_trials_and_chooses_the_best_rate_of_each_method(smoke):
    scale, asked = smoke.scale, []
    base, _ = bases(scale)

    def run(spec):
        asked.append(spec)
        return {"metric": 1.0 if spec.lr == 0.002 else 0.5}

    lines = tune(scale, base, "cola", run)
    assert asked == [trial(scale, base, "cola", spec.method, spec.lr) for spec in asked] and len(lines) == len(asked) == 24
    assert [(line["method"], line["lr"]) for line in lines if line["chosen"]] == [(method, 0.002) for method in METHODS_OF_TABLE4]
