"""What artifacts are given: captions with the scale, and errors that name the run and the command."""

import dataclasses
import math
import types

import pandas as pd
import pytest

from poet.launch.records import write_history, write_record
from poet.training.errors import RunError
from suite.collection import load_suite
from suite.context import Context
from suite.discovery import locate
from tests.claims import artifact, computed


@pytest.fixture
def context(tmp_path):
    return Context(types.SimpleNamespace(name="tiny", seeds=(0,), corpus="a text (stand-in for C4)", lacking=""), tmp_path)


def record(context, spec, rows=()):
    folder = context.results / "runs" / spec.name
    digest = write_history(folder / "history.csv", list(rows))
    write_record(folder / "record.json", {"spec_digest": spec.digest, "history_sha256": digest})


def test_captions_name_the_scale_and_a_stand_in(context):
    assert artifact().described(context.scale, "A note.") == "Table 0. Nothing. A note. Scale: tiny, a text (stand-in for C4)."
    assert computed().described(context.scale) == "Table 0. Nothing. Independent of the scale."


def test_a_history_has_its_gaps_as_nan(context, make_spec):
    spec = make_spec()
    rows = [{"step": 1, "train_loss": 2.0}, {"step": 2, "train_loss": math.nan, "validation_perplexity": 9.5}]
    record(context, spec, rows)
    history = context.history(spec)
    assert history.step.tolist() == [1, 2]
    assert math.isnan(history.validation_perplexity[0]) and history.validation_perplexity[1] == 9.5


def test_a_history_that_another_spec_left_is_refused(context, make_spec):
    spec = make_spec()
    record(context, dataclasses.replace(spec, clip_norm=2.0))
    with pytest.raises(RunError, match="of another spec"):
        context.history(spec)


@pytest.mark.parametrize("harm", ("missing", "a word where a number should be"))
def test_a_broken_history_is_named_with_its_command(context, make_spec, harm):
    spec = dataclasses.replace(make_spec(), seed=4)
    path = context.results / "runs" / spec.name / "history.csv"
    record(context, spec)
    if harm == "missing":
        path.unlink()
    else:
        path.write_text("step,train_loss\n1,hello\n")
    with pytest.raises(RunError, match=f"run {spec.name} .*history.csv.*`snakemake --cores 1 --force .*record.json --config scale=test 'seeds=\\[4\\]'`"):
        context.history(spec)


@pytest.mark.parametrize("scale", ("smoke", "mini", "night", "gpu", "paper"))
def test_every_artifact_knows_its_runs_at_every_scale(scale):
    suite = load_suite({"scale": scale, "seeds": [0, 1]})
    for name, found in suite.artifacts.items():
        assert found.label and found.caption.endswith(".") and found.outputs, name
        assert found.outputs[0].removeprefix("figures/").partition(".")[0] == name
        kinds = {output.rpartition(".")[2] for output in found.outputs}
        assert "csv" in kinds or found.reads, name
        assert kinds <= {"csv", "md", "png", "pdf", "txt", "html"} and len(kinds & {"png", "pdf", "txt"}) in (0, 3), name
    assert not suite.left_out or scale in ("night", "gpu")


def test_a_table_of_another_artifact_is_read_as_written_or_asked_for(context):
    (context.results / "table0.csv").write_text("name,value\nNA,1\n,2\n")
    assert context.table("table0").name.tolist()[0] == "NA"
    with pytest.raises(RunError, match="snakemake --cores all .*table9.csv --config scale=tiny"):
        context.table("table9")


def test_published_numbers_bear_the_name_of_an_artifact_or_of_what_several_share(repository):
    # Scales read the rates, and tools/proxies.py the tokens.
    for path in (repository / "analyses" / "published").glob("*.csv"):
        shared = path.stem in ("learning_rates", "tokens") or [*(repository / "analyses").rglob(f"common/{path.stem}.py")]
        assert path.stem in locate() or shared, f"{path.name} belongs to no artifact"
        assert not pd.read_csv(path, dtype=str).empty
