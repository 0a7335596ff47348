"""What is measured for claims, how it is judged, and how it is gathered."""

import dataclasses
import math

import pandas as pd
import pytest
from analyses.common.comparisons import largest_difference, perplexity_difference, rank_agreement
from analyses.common.evidence import (
    exactly,
    largest_of,
    over_seeds,
    paired_interval,
    rank_correlation,
    share_of,
    with_interval,
)
from analyses.tables.claims import line, named, summary
from suite.artifact import Artifact
from suite.claim import NEGATIVE, POSITIVE, Claim, Evidence, judge
from suite.context import Context
from suite.scale import load_scale

NAN, INF = math.nan, math.inf


def evidence(low, high, effect=None):
    return Evidence(effect=(low + high) / 2 if effect is None else effect, low=low, high=high, n=3)


def test_the_whole_interval_decides():
    assert judge(evidence(0.1, 0.2), (0.1, 0.2)) == "reproduced"  # regions are closed
    assert judge(evidence(0.05, 0.2), (0.1, 0.2)) == judge(evidence(0.1, 0.25), (0.1, 0.2)) == "inconclusive"
    assert judge(evidence(0.0, 0.3), (0.1, 0.2)) == "inconclusive"  # around the region
    assert judge(evidence(0.21, 0.3), (0.1, 0.2)) == judge(evidence(-1, 0.09), (0.1, 0.2)) == "contradicted"
    assert judge(evidence(0.0, 0.15, effect=0.05), (0.1, 0.2)) == "inconclusive"  # the effect lies outside, its interval not
    assert judge(evidence(0.2, 0.3), (0.1, 0.2)) == "inconclusive"  # the edge is in both


def test_zero_is_neither_negative_nor_positive():
    assert judge(exactly(0.0), NEGATIVE) == judge(exactly(0.0), POSITIVE) == "contradicted"
    assert judge(exactly(-1e-300), NEGATIVE) == judge(exactly(1e-300), POSITIVE) == "reproduced"


def test_what_has_no_number_or_no_interval_is_not_decided():
    assert judge(evidence(-2, -1, effect=NAN), NEGATIVE) == judge(evidence(NAN, -1, effect=-2), NEGATIVE) == "inconclusive"
    assert judge(evidence(-INF, INF, effect=-5), NEGATIVE) == "inconclusive"


def test_the_interval_is_students():
    mean, low, high = paired_interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert high - mean == pytest.approx(4.302652729911275 / math.sqrt(3))  # t(0.975, 2) times the standard error
    assert mean - low == pytest.approx(high - mean)
    assert paired_interval([1.0, 2.0, 3.0], 0.99)[2] - mean == pytest.approx(9.924843200918 / math.sqrt(3))
    assert paired_interval([7.0]) == (7.0, -INF, INF)


def test_seeds_give_a_mean_an_interval_and_a_p_value():
    found = over_seeds([-1.0, -2.0, -3.0], note="n", null=0.0)
    assert (found.effect, found.n, found.note) == (-2.0, 3, "n")
    assert (found.low, found.high) == paired_interval([-1.0, -2.0, -3.0])[1:]
    assert found.p == pytest.approx(0.07417990022744)  # t = -2 sqrt 3 with two degrees of freedom
    assert math.isnan(over_seeds([-1.0, -2.0]).p) and math.isnan(over_seeds([-1.0], null=0.0).p)
    assert math.isnan(over_seeds([1.0, 1.0], null=0.0).p)  # no spread, no test
    assert math.isnan(over_seeds([1.0, NAN]).effect) and judge(over_seeds([-1.0, NAN]), NEGATIVE) == "inconclusive"


def test_shares_have_their_exact_interval():
    found = share_of([True] * 10)
    assert (found.effect, found.high, found.n) == (1.0, 1.0, 10) and found.low == pytest.approx(0.025 ** (1 / 10))
    half = share_of([True, False] * 5)
    assert half.effect == 0.5 and (half.low, half.high) == pytest.approx((0.18708602844, 0.81291397155))


def test_the_largest_of_several_means_has_room_for_the_choice():
    first, second = [-1.0, -2.0, -3.0], [-4.0, -6.0, -8.0]
    found = largest_of([first, second])
    assert found.effect == -2.0 and found.n == 3
    assert found.high == paired_interval(first)[2] and found.low == paired_interval(first, 0.975)[1]
    wide = largest_of([[-5.0, -5.1, -5.2], [-30.0, -10.0, 4.0]])  # the widest may be the largest after all
    assert wide.effect == pytest.approx(-5.1) and wide.high == paired_interval([-30.0, -10.0, 4.0])[2] > 0
    assert wide.low == paired_interval([-5.0, -5.1, -5.2], 0.975)[1]
    one = largest_of([first])
    assert (one.effect, one.low, one.high) == paired_interval(first)
    assert judge(largest_of([first, [1.0, NAN, 1.0]]), NEGATIVE) == "inconclusive"


def test_three_of_four_are_not_all():
    below, above = [-1.0, -1.01, -1.02], [1.0, 1.01, 1.02]
    assert judge(largest_of([below] * 4), NEGATIVE) == "reproduced"
    assert judge(largest_of([below, below, above, below]), NEGATIVE) == "contradicted"
    assert judge(largest_of([below, [0.5, -0.5, 0.1]]), NEGATIVE) == "inconclusive"


@pytest.fixture
def cells(recorded):
    """``cells(values)``: a context, and the runs of {row: perplexity by seed} on 60m."""

    def _cells(values):
        seeds = range(len(next(iter(values.values()))))
        scale = load_scale({"scale": "mini", "seeds": list(seeds)})
        runs = {row: [scale.run("60m", row, seed) for seed in seeds] for row in values}
        every = lambda scale: [spec for specs in runs.values() for spec in specs]
        artifact = Artifact(label="", caption="", outputs=(), runs=every, build=lambda context: None)
        context = recorded(artifact, lambda s: {"validation_perplexity": values[s.variant][s.seed]}, seeds=tuple(seeds))
        return context, *runs.values()

    return _cells


def test_perplexities_are_compared_by_seed(cells):
    context, poet, adamw = cells({"poet-fs-1_2": [50.0, 61.0, 72.0], "adamw": [51.0, 63.0, 75.0]})
    found = perplexity_difference(context, poet, adamw)
    assert found == over_seeds([-1.0, -2.0, -3.0], (*poet, *adamw), null=0.0)  # of 12 between seeds nothing is left
    assert found == largest_difference(context, [(poet, adamw)])
    with pytest.raises(ValueError, match="same seeds"):
        perplexity_difference(context, poet, adamw[::-1])


def test_a_diverged_run_is_said(cells):
    context, poet, adamw = cells({"poet-fs-1_2": [50.0, NAN], "adamw": [51.0, 63.0]})
    found = perplexity_difference(context, poet, adamw)
    assert math.isnan(found.effect) and found.note == "diverged: 1 of 2 pairs"
    both = largest_difference(context, [(adamw, adamw), (poet, adamw)])
    assert math.isnan(both.effect) and both.note == "diverged: 1 of 4 pairs"


def test_the_largest_difference_says_whose_it_is(cells):
    rows = {"poet-fs-1_2": [50.0, 61.0], "adamw": [60.0, 71.5], "galore": [52.0, 63.5]}
    context, poet, adamw, galore = cells(rows)
    found = largest_difference(context, [(poet, adamw), (poet, galore)])
    assert found.effect == -2.25 and found.note == "the largest of 2: 60m/poet-fs-1_2 minus 60m/galore"
    assert found.runs == (*poet, *adamw, *galore)  # each once


def test_rank_agreement_is_of_each_seed_and_stays_within_one(cells):
    rows = {"adamw": [1.0, 3.0], "galore": [2.0, 2.0], "lora-r64": [3.0, 1.0]}
    context, *specs = cells(rows)
    found = rank_agreement(context, [10.0, 20.0, 30.0], specs)
    assert found.effect == 0.0 and (found.low, found.high) == (-1.0, 1.0) and found.n == 2  # one and minus one
    assert found.note == "3 rows"


def test_what_does_not_converge_ranks_last(cells):
    context, *specs = cells({"adamw": [1.0, 1.0], "galore": [2.0, 2.0], "lora-r64": [NAN, NAN]})
    assert rank_agreement(context, [10.0, 20.0, NAN], specs).effect == 1.0
    assert rank_agreement(context, [NAN, 20.0, 10.0], specs).effect == -1.0


def test_correlations_are_averaged_over_groups():
    falling, rising = [[3.0], [2.0], [1.0]], [[1.0], [2.0], [3.0]]
    assert rank_correlation([([1, 2, 3], falling)]).effect == -1.0
    found = rank_correlation([([1, 2, 3], falling), ([1, 2, 3], rising), ([1, 2, 3], rising)])
    assert found.effect == pytest.approx(1 / 3) and found.n == 1 and (found.low, found.high) == (-1.0, 1.0)


def test_an_effect_in_words():
    assert with_interval(evidence(-0.2, 0.866, effect=1 / 3)) == "0.33 (95% interval -0.20 to 0.87, 3 seeds)"
    assert with_interval(over_seeds([0.5])) == "0.50 (one seed: no interval)"


# How claims are gathered.


def artifact(**options):
    about = {"label": "Table", "caption": "", "outputs": (), "runs": lambda scale: [], "build": lambda context: None}
    return Artifact(**{**about, **options})


def claim(**options):
    about = {"key": "t-c", "place": "Section 1", "says": "It falls.", "kind": "ordering", "rule": "Below zero.", "unit": "nats"}
    return Claim(**{**about, "region": NEGATIVE, "measure": lambda context: exactly(-1.0), **options})


def unmeasured(context):
    raise AssertionError("this scale does not judge it")


def at(name, tmp_path):
    return Context(load_scale({"scale": name, "seeds": [0]}), tmp_path)


def test_runs_are_named_once_with_their_seeds():
    scale = load_scale({"scale": "mini", "seeds": [0, 2]})
    poet, adamw = ([scale.run("60m", row, seed) for seed in (2, 0)] for row in ("poet-fs-1_2", "adamw"))
    assert named([*poet, *adamw, *poet]) == "60m/poet-fs-1_2{0,2} 60m/adamw{0,2}" and named([]) == ""


def test_a_line_has_the_claim_and_what_was_found(tmp_path):
    context = at("mini", tmp_path)
    specs = [context.scale.run("60m", "adamw", seed) for seed in (3, 1)]
    measure = lambda context: over_seeds([-1.0, -1.5], specs, "two", null=0.0)
    found = line("t", artifact(), claim(measure=measure), context)
    assert (found["claim"], found["artifact"], found["says"], found["unit"]) == ("t-c", "t", "It falls.", "nats")
    assert (found["region_low"], found["region_high"]) == NEGATIVE
    assert found["effect"] == -1.25 and (found["low"], found["high"]) == paired_interval([-1.0, -1.5])[1:]
    assert (found["n"], found["note"], found["runs"], found["seeds"]) == (2, "two", "60m/adamw{1,3}", "1 3")
    assert found["p"] == pytest.approx(0.12566591637800) and found["verdict"] == "inconclusive"
    assert found["scale"] == "mini" and "enwik8" in found["corpus"]


def test_what_a_scale_cannot_show_is_not_measured(tmp_path):
    mini, smoke, gpu = (at(name, tmp_path) for name in ("mini", "smoke", "gpu"))
    cases = [
        (smoke, artifact(), claim(measure=unmeasured), "plumbing"),
        (mini, artifact(), claim(measure=unmeasured, paper_only="too small"), "too small"),
        (gpu, artifact(models=("3b",)), claim(measure=unmeasured), "no model 3b"),
    ]
    for context, about, asked, why in cases:
        found = line("t", about, asked, context)
        assert found["verdict"] == "not at this scale" and why in found["note"]
        assert found["n"] == 0 and math.isnan(found["effect"]) and found["runs"] == ""


def test_a_claim_about_a_model_that_the_scale_lacks_is_not_measured(tmp_path):
    found = line("t", artifact(), claim(measure=unmeasured, models=("1.3b",)), at("gpu", tmp_path))
    assert found["verdict"] == "not at this scale" and "no model 1.3b" in found["note"]


def test_what_is_the_same_at_every_scale_is_judged_at_every_scale(tmp_path):
    found = line("t", artifact(scale_free=True), claim(), at("smoke", tmp_path))
    assert (found["verdict"], found["scale"], found["corpus"]) == ("reproduced", "any", "")
    assert line("t", artifact(), claim(paper_only="too small"), at("paper", tmp_path))["verdict"] == "reproduced"


def test_the_summary_counts_verdicts():
    verdicts = ["reproduced", "reproduced", "contradicted", "inconclusive"]
    frame = pd.DataFrame({"verdict": verdicts, "kind": ["trend", "ordering", "ordering", "ordering"]})
    first, *kinds = summary(frame)
    assert first == "4 claims: 2 reproduced, 1 contradicted, 1 inconclusive, 0 not at this scale."
    assert kinds[:2] == ["ordering (3): 1 reproduced, 1 contradicted, 1 inconclusive.", "trend (1): 1 reproduced."]


def test_claims_and_evidence_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        claim().rule = "whatever passes"
