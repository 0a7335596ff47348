"""Tables, figures and the report say which runs were not trained here; a run that is trained over a restored one is not among them."""

import csv

import pytest

from suite.artifact import Artifact
from suite.context import Context
from analyses.report.report import page
from analyses.report.sources import on_the_page
from suite.scale import load_scale
from suite.recorded import marking
from suite.recorded.origin import sentence, without_sentence
from suite.recorded.restore import unpack
from tests.analyses.report.small_results import write_results
from tests.suite.recorded.conftest import WHERE


@pytest.fixture
def artifact(specs, monkeypatch):
    """One with three runs, a CSV and a page."""

    def build(context):
        (context.results / "some.csv").write_text('model,measured\n"60m, small",1.5\n')
        (context.results / "some.md").write_text("# Some\n\n- A sentence.\n")

    made = Artifact(
        label="Table 0",
        caption="Some numbers.",
        outputs=("some.csv", "some.md"),
        runs=lambda scale: [specs["60m/adamw"], specs["130m/adamw"], specs["60m/poet-fs-1_2"]],
        build=build,
    )
    monkeypatch.setattr(marking, "find", lambda name: made)
    return made


@pytest.fixture
def context(tmp_path):
    return Context(load_scale({"scale": "smoke", "seeds": [0]}), tmp_path)


def restore(context, run):
    unpack(run, context.results / "runs" / run.name)


def test_what_was_trained_here_is_built_as_before(artifact, context, write_run):
    for spec in artifact.runs(context.scale):
        write_run(context.results, spec)
    marking.build_artifact("some", context)
    assert (context.results / "some.md").read_text() == "# Some\n\n- A sentence.\n"
    assert (context.results / "some.csv").read_text() == 'model,measured\n"60m, small",1.5\n'
    assert "Recorded" not in marking.caption(context, artifact)


def test_recorded_runs_are_named_with_machine_and_commit(artifact, context, recorded_run):
    for spec in artifact.runs(context.scale):
        restore(context, recorded_run(spec))
    marking.build_artifact("some", context)
    said = "Recorded runs, not trained here: 3 of 3 (on A CPU, cpu (1 threads), commit aaaaaaaaa)."
    page = (context.results / "some.md").read_text()
    assert page == f"# Some\n\n- A sentence.\n\n{said}\n"
    assert without_sentence(page) == without_sentence("# Some\n\n- A sentence.\n") == "# Some\n\n- A sentence.\n"
    assert marking.caption(context, artifact).endswith(said)
    assert (context.results / "some.csv").read_text() == 'model,measured\n"60m, small",1.5\n'


def test_a_few_commits_of_one_machine_are_named_and_more_are_counted(context, specs, recorded_run):
    *runs, again, absent = list(specs.values())[:7]
    for number, spec in zip((0, 1, 2, 3, 4, 1), [*runs, again], strict=True):
        restore(context, recorded_run(spec, provenance={**WHERE, "commit": f"{number}" * 40, "dirty": spec == runs[1]}))
    said = sentence(context.results, runs[:2])
    assert said == "Recorded runs, not trained here: 2 of 2 (on A CPU, cpu (1 threads), commit 000000000 and commit 111111111 with uncommitted changes)."
    assert "5 of 5 (on A CPU, cpu (1 threads), 5 commits, 1 of them with uncommitted changes: each record names its own)" in sentence(context.results, runs)
    # The sixth has the commit of the second, without its changes; a run that is not there does not count.
    assert "6 of 6 (on A CPU, cpu (1 threads), 5 commits, 1 of them" in sentence(context.results, [*runs, again, absent])


def test_foreign_ones_are_called_so_in_the_csv_too(artifact, context, recorded_run):
    first, second, third = artifact.runs(context.scale)
    restore(context, recorded_run(first))
    restore(context, recorded_run(second, "lab-b"))
    marking.build_artifact("some", context)
    assert "1 foreign, from lab-b, on A CPU" in (context.results / "some.md").read_text()
    with open(context.results / "some.csv", newline="") as file:
        assert list(csv.DictReader(file)) == [{"model": "60m, small", "measured": "1.5", "foreign": "1 of 2 from lab-b"}]


def test_a_stale_one_is_called_so(artifact, context, recorded_run):
    spec = artifact.runs(context.scale)[0]
    restore(context, recorded_run(spec, training_digest="0" * 64))
    assert "training code changed since" in marking.caption(context, artifact)


def test_a_run_that_was_trained_again_is_not_called_recorded(artifact, context, recorded_run, write_run):
    spec = artifact.runs(context.scale)[0]
    restore(context, recorded_run(spec, "lab-b"))
    write_run(context.results, spec, loss=2.0)
    assert sentence(context.results, [spec]) == ""


def test_what_is_built_from_others_is_marked_for_their_runs(context, specs):
    from suite.discovery import find

    behind = {spec.name for spec in marking.runs_behind(find("claims"), context)}
    assert {spec.name for spec in find("table2").runs(context.scale)} <= behind


def test_the_report_does_without_what_could_not_be_built_and_says_so(tmp_path):
    whole = Context(load_scale({"scale": "smoke", "seeds": [0]}), tmp_path)
    write_results(whole)
    reason = "3 of its 9 runs are missing"
    for name in ("table2", "figure5"):
        for output in on_the_page(whole.scale)[name].outputs:
            (tmp_path / output).unlink(missing_ok=True)
    text = page(Context(whole.scale, tmp_path, {"table2": reason, "figure5": reason}))
    assert f"Table 2 is not here: {reason}." in text and f"Figure 5 is not here: {reason}." in text
    assert 'id="table5"' in text and 'id="table2"' not in text
