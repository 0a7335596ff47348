"""Table 4 from records: what it prints, and when it judges."""

import math

import pandas as pd
import pytest

from analyses.tables.claims import named
from analyses.common.learned import LEARNED, all_lower, learned
from analyses.tables.table4 import ARTIFACT, CLAIMS, METHODS, NAMES, PRINTED, TUNED, oft_lower
from poet.finetuning.spec import FinetuningSpec
from suite.collection import distinct
from suite.discovery import find
from suite.finetuning import tuned_rates
from suite.judging import judge, side_and_p
from suite.grounds import Grounds
from suite.scale import load_scale
from suite.tuning.finetuning import tune

POET_BETTER, OFT_WORSE, *TUNED_CLAIMS = CLAIMS


@pytest.fixture(autouse=True)
def untuned(monkeypatch, tmp_path):
    """No scale's rates are recorded, but where a test says so."""
    monkeypatch.setattr("suite.finetuning.rates_path", lambda scale: tmp_path / "no rates.csv")


@pytest.fixture
def table(recorded):
    """``table(metric)``: the context and CSV where a run's metric is ``metric(spec)``; STS-B is real."""

    def make(metric, scale="mini"):
        def record(spec):
            if not isinstance(spec, FinetuningSpec):
                return {}
            kind = "real" if spec.task == "stsb" else "stand-in"
            said = {"kind": kind, "sentence": f"{kind}: a rule"}
            return {"metric": metric(spec), "without_learning": 0.5, "trainable_parameters": 9, "examples": {"train": 640, "validation": 600}, "origin": said}

        context = recorded(ARTIFACT, record, scale)
        ARTIFACT.build(context)
        return context, pd.read_csv(context.results / "table4.csv")

    return make


def spread(spec):
    return 0.001 * spec.seed


#: What caption and claims say of the data.
STAND_INS = "Stand-ins, made by a rule, take the place of the data of CoLA, MNLI, MRPC, QNLI, QQP, RTE, SST-2"


def judged(claim, context):
    return judge(claim, ARTIFACT, claim.measure(context), context, Grounds(context, []))


def test_every_cell_stands_beside_the_printed_one(table):
    context, frame = table(lambda spec: 0.7 + spread(spec))
    assert (frame.rate == "as printed").all() and "No rates tuned alike at mini scale." in (context.results / "table4.md").read_text()
    assert all(claim.measure(context).note == "no rates tuned alike" for claim in TUNED_CLAIMS)
    assert len(frame) == 48 and (frame.n == 5).all() and (frame.learned == "yes").all()
    assert frame.measured.round(6).eq(0.702).all() and frame.learning_rate.eq(2e-5).all()
    cell = frame.query("finetuning == 'OFT' and pretraining == 'POET' and task == 'RTE'").iloc[0]
    assert cell.published == PRINTED.loc[("OFT", "POET"), "RTE"] == 0.538
    assert cell.unit == "accuracy" and cell.low < cell.measured < cell.high
    text = (context.results / "table4.md").read_text()
    assert "| OFT | POET |" in text and "0.538 / **0.702** ± 0.002 / 0.702" in text and "stand-in: a rule" in text and "RTE (stand-in)" in text


def test_the_median_is_of_the_seeds_and_stands_beside_the_mean(table):
    context, frame = table(lambda spec: 0.9 if spec.seed == 4 else 0.7 + spread(spec))
    assert frame.measured.round(4).eq(0.7412).all() and frame["median"].round(6).eq(0.702).all()
    assert "0.538 / **0.741** ± 0.089 / 0.702" in (context.results / "table4.md").read_text()


def test_stand_ins_are_called_so_in_the_caption_and_in_the_claims(table):
    context, _ = table(lambda spec: 0.7 + spread(spec))
    assert f"{STAND_INS}." in (context.results / "figures/table4.txt").read_text()
    assert POET_BETTER.measure(context).note == STAND_INS == OFT_WORSE.measure(context).note


def test_nothing_learned_is_not_judged(table):
    context, frame = table(lambda spec: 0.5 + LEARNED * spread(spec) - 0.01)
    assert (frame.learned == "no").all()
    assert "**No order is judged**" in (context.results / "table4.md").read_text()
    verdict = judged(POET_BETTER, context)
    assert verdict.result == "undecided" and math.isnan(verdict.p)


def test_the_validation_examples_scatter_too(table):
    """Seeds that agree say nothing of the 600 examples that they share: 0.53 is within two standard errors of 0.5."""
    for score, expected in ((0.53, "no"), (0.55, "yes")):
        _, frame = table(lambda spec, score=score: score + spread(spec) / 100)
        assert set(frame[frame.unit == "accuracy"].learned) == {expected}


def test_correlations_and_rouge_scatter_with_their_examples_too():
    assert not learned([0.53, 0.531], 0.5, "pearson", 600) and learned([0.62, 0.621], 0.5, "pearson", 600)
    assert not learned([25.0, 25.1], 20.0, "rouge", 100) and learned([29.0, 29.1], 20.0, "rouge", 100)


def oft_is(worse_by, spec):
    """A metric where OFT is worse by so much; on STS-B the later seeds of OFT are far better."""
    lucky = 0.3 * (spec.task == "stsb" and spec.seed > 2) if worse_by > 0 else -0.3 * (spec.task == "stsb" and spec.seed > 2)
    return 0.9 + spread(spec) + (lucky - worse_by if spec.method == "oft" else 0)


@pytest.mark.parametrize(("worse_by", "result", "shares"), [(0.1, "same direction", (1, 28 / 32)), (-0.05, "opposite direction", (0, 4 / 32))])
def test_oft_is_generally_worse_if_it_is_in_more_than_half_of_the_comparisons(table, worse_by, result, shares):
    context, _ = table(lambda spec: oft_is(worse_by, spec))
    evidence = OFT_WORSE.measure(context)
    assert set(evidence.runs) == set(ARTIFACT.finetunings(context.scale)) and "60m/rte/60m-adamw-seed0/oft-lr=2e-05{0,1,2,3,4}" in named(evidence.runs)
    assert evidence.effect == pytest.approx((3 * shares[0] + 2 * shares[1]) / 5) and evidence.n == 5
    assert judged(OFT_WORSE, context).pending == result


def test_comparisons_that_are_left_out_count_against_the_others(table):
    context, _ = table(lambda spec: 0.5 + spread(spec) if spec.task != "cola" else oft_is(0.1, spec))
    evidence = OFT_WORSE.measure(context)
    assert (evidence.effect, evidence.p) == (1, 1) and (evidence.low, evidence.high) == (pytest.approx(4 / 32), 1)
    assert evidence.note.startswith("28 of 32 comparisons left out") and judged(OFT_WORSE, context).result == "undecided"


@pytest.mark.parametrize(("difference", "effect"), [(-0.1, 28 / 32), (0.1, 4 / 32)])
@pytest.mark.parametrize(("seeds", "p"), [(5, 2 / 2**5), (6, 2 / 2**6)])
def test_leaving_a_comparison_out_makes_no_verdict_stronger(difference, effect, seeds, p):
    """Seeds that agree have the p-value of the sign test, with and without comparisons that were left out."""
    for left, expected in ((0, float(difference < 0)), (4, effect)):
        evidence = oft_lower([[difference] * seeds] * (32 - left) + [None] * left, (), "")
        assert evidence.effect == evidence.low == evidence.high == expected
        assert side_and_p(evidence, OFT_WORSE.region) == ("inside" if difference < 0 else "outside", p)


def test_a_run_that_diverged_is_no_evidence_for_the_other():
    evidence = oft_lower([[math.nan, -0.1, -0.1]] * 8, (), "")
    assert math.isnan(evidence.effect) and side_and_p(evidence, OFT_WORSE.region) == ("neither", 1.0) and evidence.note == "a run diverged"


def test_two_pretrained_models_are_one_difference_however_often_they_are_finetuned(table):
    context, _ = table(lambda spec: (0.8 if "poet" in spec.base else 0.7) + spread(spec))
    evidence = POET_BETTER.measure(context)
    assert evidence.effect == pytest.approx(-0.1) and evidence.n == 1
    verdict = judged(POET_BETTER, context)
    assert (verdict.result, verdict.note) == ("undecided", "one seed: no interval")


def test_of_what_was_left_out_a_difference_may_be_the_largest_there_is():
    better, worse = [-0.2, -0.19, -0.21], [0.2, 0.19, 0.21]
    assert all_lower([better, better], (), 2.0, "", "").high < 0
    assert all_lower([better, None], (), 2.0, "", "").high == 2.0
    refuted = all_lower([worse, None], (), 2.0, "why", "")
    assert refuted.low > 0 and refuted.high == 2.0 and refuted.note == "1 of 2 comparisons left out: why"


def test_tasks_without_learning_are_left_out_and_counted(table):
    def metric(spec):
        if spec.task == "rte":
            return 0.5 + spread(spec)
        return (0.8 if "poet" in spec.base else 0.7) + spread(spec) * (1 + 0.1 * ("poet" in spec.base))

    context, frame = table(metric)
    assert set(frame[frame.learned == "no"].task) == {"RTE"}
    evidence = POET_BETTER.measure(context)
    assert evidence.note .startswith("3 of 24 comparisons left out: nothing was learned") and evidence.effect < 0
    assert judged(POET_BETTER, context).result == "undecided"  # the claim is of all tasks


def test_a_diverged_run_is_told(table):
    context, frame = table(lambda spec: math.nan if (spec.seed, spec.method) == (0, "full") else 0.8)
    assert frame[frame.finetuning == "Full FT"].diverged.eq(1).all() and frame[frame.finetuning == "Full FT"]["median"].isna().all()
    text = (context.results / "table4.md").read_text()
    assert "diverged (1 of 5)" in text and "mean over 5 seeds of finetuning" in text


@pytest.mark.parametrize("scale", ["smoke", "mini", "night", "gpu", "paper"])
def test_it_starts_from_table_2s_own_runs(scale):
    asked = load_scale({"scale": scale, "seeds": [0]})
    runs = distinct({name: find(name).runs(asked) for name in ("table2", "table4")})  # raises if the two differ
    bases = ARTIFACT.runs(asked)
    assert [runs[spec.name].keep_weights for spec in bases] == [True, True] and {spec.method for spec in bases} == {"adamw", "poet"}
    assert all(spec in find("table2").runs(asked) for spec in bases)
    finetunings = distinct({"table4": ARTIFACT.finetunings(asked)})
    assert len(finetunings) == 2 * len(METHODS) * 8 * asked.settings.finetuning.seeds
    assert {(spec.base, spec.base_digest) for spec in finetunings.values()} == {(spec.name, spec.digest) for spec in bases}
    assert {spec.parameters["init"] for spec in finetunings.values() if spec.method == "poet"} == {"keep"}, "POET starts from the pretrained weights"
    assert {spec.lr for spec in finetunings.values()} == {2e-5} and {spec.epochs for spec in finetunings.values()} <= {1, 10}


@pytest.fixture
def tuned(monkeypatch, tmp_path):
    """Searches of every cell at mini scale, kept where the scale reads them: the best rate of each method is known."""
    best = {"full": 0.002, "oft": 0.008, "poet": 0.001 * 2**20}  # the last one is out of reach
    scale = load_scale({"scale": "mini", "seeds": [0]})
    trained = []

    def run(spec):
        trained.append(spec)
        return {"metric": 0.9 - 0.01 * abs(math.log2(spec.lr / best[spec.method]))}

    lines = [line for base in ARTIFACT.runs(scale) for task in NAMES.values() for line in tune(scale, base, task, run)]
    path = tmp_path / "rates.csv"
    monkeypatch.setattr("suite.finetuning.rates_path", lambda name: path)
    pd.DataFrame(lines).to_csv(path, index=False)
    return path, best, trained


def test_each_method_has_as_many_trials_on_a_seed_that_no_table_uses(tuned):
    path, best, trained = tuned
    frame = pd.read_csv(path)
    counts = frame.groupby(["method", "row", "task"]).size()
    assert counts["full"].eq(8).all() and counts["oft"].eq(8).all() and counts["poet"].eq(12).all()  # censored until the last
    assert len(counts) == 48 and len(frame) == len(trained)
    assert {spec.seed for spec in trained} == {1000}
    chosen = frame[frame.chosen == "yes"]
    assert set(chosen[chosen.method == "full"].lr) == {best["full"]} and set(chosen[chosen.method == "oft"].lr) == {best["oft"]}
    assert set(chosen[chosen.method == "poet"].state) == {"censored"} and set(chosen[chosen.method != "poet"].state) == {"finished"}


def test_tuned_rates_stand_beside_the_printed_one(tuned, table):
    def metric(spec):
        return (0.8 if "poet" in spec.base else 0.7) + 0.05 * (spec.lr > 2e-5) + spread(spec) * (1 + 0.1 * ("poet" in spec.base))

    context, frame = table(metric)
    assert list(frame.rate.unique()) == ["as printed", TUNED] and len(frame) == 96
    mine = frame[frame.rate == TUNED].set_index("finetuning")
    assert set(mine.loc["OFT"].learning_rate) == {0.008} and set(mine.loc["POET"].at_grid_end) == {"lr"}
    text = (context.results / "table4.md").read_text()
    assert "## Learning rate tuned alike" in text and "°" not in text.split("## ")[2] and "\\*" in text.split("## ")[2]
    evidence = TUNED_CLAIMS[0].measure(context)
    assert evidence.effect < 0 and evidence.note.startswith("8 of 24 comparisons left out")  # POET's rates were chosen at an end


@pytest.mark.parametrize("other", [lambda frame: frame[frame.task != "rte"], lambda frame: frame.assign(model="130m")])
def test_rates_of_a_part_of_the_cells_or_of_another_model_are_not_used(tuned, other):
    path, *_ = tuned
    scale = load_scale({"scale": "mini", "seeds": [0]})
    assert len(tuned_rates(scale)) == 48
    other(pd.read_csv(path)).to_csv(path, index=False)
    assert tuned_rates(scale) == {}
