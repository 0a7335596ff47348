"""What the rules are told: which runs share a process, and what an artifact is built from."""

import re
import types
from dataclasses import replace

import pytest

from suite.collection import RESULTS, Suite, load_suite
from suite.discovery import discover
from suite.scale import ROOT


@pytest.fixture(scope="module")
def smoke():
    return load_suite({"scale": "smoke", "seeds": [0, 1]})


def test_runs_that_share_a_process_are_each_in_one_and_match_no_pattern(smoke):
    for model in smoke.scale.models:
        jobs = smoke.shared_jobs(model)
        names = [name for job in jobs for name in job]
        assert sorted(names) == sorted(name for name, spec in smoke.runs.items() if spec.model == model)
        assert max(map(len, jobs)) == smoke.scale.settings.resources.runs_per_job or len(jobs) == 1
        assert not any(re.fullmatch(smoke.pattern(model), name) for name in names)


def test_a_run_has_a_process_of_its_own_where_the_scale_says_nothing():
    mini = load_suite({"scale": "mini", "seeds": [0]})
    for model in mini.scale.models:
        assert mini.shared_jobs(model) == []
        matched = {name for name in mini.runs if re.fullmatch(mini.pattern(model), name)}
        assert matched == {name for name, spec in mini.runs.items() if spec.model == model}


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "config" / "scales").glob("*.yaml")))
def test_no_run_is_trained_twice_under_two_names(name):
    """It would be if two artifacts spelled the same parameters differently, as Figure 9 and the horizon ladder could at night scale."""
    names = {}
    for spec in load_suite({"scale": name, "seeds": [0]}).trainable.values():
        names.setdefault(replace(spec, variant="").digest, []).append(spec.name)
    assert not [found for found in names.values() if len(found) > 1]


def test_a_machine_without_gpus_is_told_before_data_are_prepared(smoke):
    assert smoke.crowded(0) == [] and smoke.crowded(1) == []
    (said,) = load_suite({"scale": "paper", "seeds": [0]}).crowded(0)
    assert said.startswith("note: runs of 60m, 130m, 350m, 1.3b, 3b need a GPU and this machine shows none")


@pytest.mark.parametrize(("name", "kept"), [("night", True), ("mini", False)])
def test_where_finished_runs_are_kept_snakemake_is_told_of_no_code(name, kept):
    suite = load_suite({"scale": name, "seeds": [0]})
    assert (suite.training_code(suite.runs) == []) is (suite.finetuning_code(suite.finetunings) == []) is kept


def test_a_text_that_is_gone_is_what_the_prepared_data_say_of_it(tmp_path):
    """Else Snakemake would delete the rows, in order to make them from a text that is not there."""
    suite = types.SimpleNamespace(scale=types.SimpleNamespace(data={"corpus": "c4", "path": str(tmp_path / "gone")}), dataset=tmp_path)
    assert Suite.text.fget(suite) == {}
    (tmp_path / "meta.json").write_text('{"corpus": {"name": "c4", "shards": ["a"]}}')
    assert Suite.text.fget(suite) == {"name": "c4", "shards": ["a"]}


def test_what_gathers_is_built_from_every_other_artifact_of_all(smoke):
    plain = [o for a in smoke.artifacts.values() if a.in_all and not a.reads for o in a.outputs]
    folder = RESULTS / "smoke"
    assert smoke.sources("claims") == [folder / o for o in plain] and folder / "table2.csv" in smoke.sources("claims")
    assert smoke.shown_beside("claims") == [RESULTS / o for o in plain]
    assert smoke.sources("table2") == []
    assert not set(smoke.sources("claims")) & {folder / o for a in discover().values() if a.reads for o in a.outputs}
