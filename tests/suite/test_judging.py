"""Every way to a verdict: scope, result, controls, Holm's correction and confounders."""

import math
import types

import pytest
from scipy import stats

from analyses.common.evidence import ALL, over_seeds
from suite import judging
from suite.claim import ANYTHING, NEGATIVE, POSITIVE, Confounder
from suite.context import Context
from suite.fitness import CONTROLS, FULL_BEATS_LORA, LITTLE_SCATTER, RATES_INSIDE, Reading
from suite.judging import corrected, judge, scope_of, side_and_p, side_of
from suite.scale import load_scale
from suite.statistics import t_quantile
from tests.claims import artifact, claim, computed, evidence

NAN, INF = math.nan, math.inf


@pytest.fixture
def verdict(tmp_path, monkeypatch):
    """``verdict(evidence, controls, scale, artifact, only, **claim)``: with the controls' outcomes by name, all others passed; ``only`` are the models."""

    def _verdict(found, controls=(), scale="mini", of=None, only=None, **options):
        outcomes = {control.name: Reading("passed", "") for control in CONTROLS if control.read}
        outcomes |= {name: Reading(outcome, "") for name, outcome in dict(controls).items()}
        monkeypatch.setattr(judging, "readings", lambda grounds, about, names: {n: outcomes[n] for n in names if n in outcomes})
        loaded = load_scale({"scale": scale, "seeds": [0]})
        context = Context(loaded.only(only) if only else loaded, tmp_path)
        (one,) = corrected([judge(claim(**options), of or artifact(), found, context, None)])
        return one

    return _verdict


CLEAR, REVERSE = evidence(-1.1, -0.9), evidence(0.9, 1.1)


def test_the_whole_interval_decides_and_regions_are_closed():
    assert side_of(evidence(0.1, 0.2), (0.1, 0.2)) == "inside"
    assert side_of(evidence(0.05, 0.2), (0.1, 0.2)) == side_of(evidence(0.0, 0.3), (0.1, 0.2)) == "neither"
    assert side_of(evidence(0.21, 0.3), (0.1, 0.2)) == side_of(evidence(-1, 0.09), (0.1, 0.2)) == "outside"
    assert side_of(evidence(0.2, 0.3), (0.1, 0.2)) == "neither"  # the edge is in both
    assert side_of(evidence(0.0, 0.0), NEGATIVE) == side_of(evidence(0.0, 0.0), POSITIVE) == "outside"  # zero has no sign
    assert side_of(evidence(-2, -1, effect=NAN), NEGATIVE) == side_of(evidence(NAN, -1, effect=-2), NEGATIVE) == "neither"


def test_a_region_without_an_end_holds_every_effect(verdict):
    """Seeds cannot scatter across an end that there is not."""
    assert verdict(evidence(-1.0, 3.0), region=ANYTHING).result == "same direction"
    assert verdict(evidence(0.1, 0.9, bounds=(0.0, 1.0)), region=(0.0, 1.0)).result == "same direction"


def test_exact_claims_are_confirmed_or_refuted_at_any_scale(verdict):
    one, other = evidence(1.0, 1.0, n=1), evidence(0.5, 0.5, n=1)
    for options in ({"exact": True}, {"of": computed()}):
        for scale in ("mini", "paper"):
            assert verdict(one, scale=scale, region=(1.0, 1.0), **options).result == "confirmed"
            assert verdict(other, scale=scale, region=(1.0, 1.0), **options).result == "refuted"
    assert verdict(evidence(0.5, 1.5), region=(1.0, 2.0), exact=True).result == "undecided"  # a simulation's interval


def test_a_choice_of_ours_is_no_error_of_the_paper_s(verdict):
    options = {"region": (1.0, 1.0), "of": computed(), "configuration": True}
    assert verdict(evidence(0.96, 0.96), **options).result == "configuration differs"
    assert verdict(evidence(1.0, 1.0), **options).result == "confirmed"


def test_trained_models_have_a_direction_at_a_small_scale_and_more_at_the_paper_s(verdict):
    assert [verdict(found).result for found in (CLEAR, REVERSE)] == ["same direction", "opposite direction"]
    assert [verdict(found, scale="paper").result for found in (CLEAR, REVERSE)] == ["reproduced", "contradicted"]
    assert verdict(evidence(-1.0, 0.1)).result == verdict(evidence(-1.0, 0.1), scale="paper").result == "undecided"


def test_a_claim_about_all_models_is_not_judged_without_one(verdict):
    found = verdict(CLEAR, only=("60m", "130m", "350m"))
    assert found.result == "not at this scale" and found.note == "without 1.3b and 3b, whose runs are not all recorded"
    assert verdict(CLEAR, only=("60m",), models=("60m",)).result == "same direction"
    assert verdict(evidence(1.0, 1.0, n=1), only=("60m",), exact=True, region=(1.0, 1.0)).result == "confirmed"


def test_scopes():
    assert scope_of(claim(), artifact(), "mini") == scope_of(claim(), artifact(), "night") == "measured"
    assert scope_of(claim(), artifact(), "paper") == scope_of(claim(paper_only="C4"), artifact(), "mini") == "paper"
    assert scope_of(claim(exact=True), artifact(), "mini") == scope_of(claim(), computed(), "paper") == "exact"


@pytest.mark.parametrize("outcome", ["failed", "not measured"])
@pytest.mark.parametrize("found", [CLEAR, REVERSE, evidence(-1.0, 1.0)])
def test_a_scale_that_is_not_fit_does_not_judge(verdict, found, outcome):
    said = verdict(found, {FULL_BEATS_LORA: outcome})
    control = "control failed" if outcome == "failed" else "control not measured"
    assert (said.result, said.note) == ("not at this scale", f"{control}: {FULL_BEATS_LORA}")
    assert said.fitness == f"{outcome}: {FULL_BEATS_LORA}" and math.isnan(said.p)


def test_a_failed_control_is_named_before_one_that_was_not_measured(verdict):
    said = verdict(CLEAR, {FULL_BEATS_LORA: "not measured", RATES_INSIDE: "failed"})
    assert said.note == f"control failed: {RATES_INSIDE}"
    assert said.fitness == f"failed: {RATES_INSIDE}; not measured: {FULL_BEATS_LORA}"


def test_a_claim_needs_the_controls_of_its_kind_alone(verdict):
    assert verdict(CLEAR, {FULL_BEATS_LORA: "failed"}, kind="invariance").result == "same direction"
    assert verdict(CLEAR, {RATES_INSIDE: "failed"}, kind="invariance").result == "not at this scale"
    assert verdict(CLEAR, {name: "failed" for name in (RATES_INSIDE, FULL_BEATS_LORA)}, kind="timing").fitness == ""
    assert verdict(CLEAR, {FULL_BEATS_LORA: "failed"}, scale="paper").result == "reproduced"


def test_scatter_above_a_third_of_a_difference_is_not_judged(verdict):
    # Three seeds: the interval excludes zero from 2.48 standard deviations on; three are asked for.
    half = 4.302652729911275 / math.sqrt(3)
    for deviations, result in ((2.9, "not at this scale"), (3.1, "same direction")):
        said = verdict(evidence(-deviations - half, -deviations + half))
        assert said.result == result and (result == "same direction") == (LITTLE_SCATTER not in said.fitness)


def test_an_interval_without_width_is_undecided_until_six_seeds_agree(verdict):
    said = verdict(evidence(-1.0, -1.0), kind="trend")
    assert (said.result, said.p) == ("undecided", 0.25) and said.note == "3 of 3 seeds lie where the claim holds, which has p = 0.25"
    assert verdict(evidence(0.0, 0.0), kind="trend").note.startswith("3 of 3 seeds lie elsewhere")
    assert verdict(evidence(-1.0, -1.0, n=6), kind="trend").result == "same direction"
    assert verdict(evidence(-1.0, -1.0, n=1), kind="trend").result == "undecided"
    every = {"kind": "ordering", "region": (1.0, 1.0)}  # an order that shares of 1 alone show: no scatter is little scatter
    assert verdict(evidence(1.0, 1.0, n=6, bounds=(0.0, 1.0)), **every).result == "same direction"


def test_one_seed_decides_nothing(verdict):
    said = verdict(evidence(-INF, INF, effect=-5.0, n=1))
    assert (said.result, said.note) == ("undecided", "one seed: no interval") and math.isnan(said.p)


def test_a_run_that_diverged_decides_nothing(verdict):
    said = verdict(evidence(NAN, NAN, note="diverged: 1 of 3 pairs"))
    assert (said.result, said.note) == ("undecided", "diverged: 1 of 3 pairs")


def test_a_test_without_a_value_counts_in_the_correction():
    assert side_and_p(evidence(NAN, NAN), NEGATIVE) == ("neither", 1.0)
    assert math.isnan(side_and_p(judging.NOTHING, NEGATIVE)[1])  # no run of it was trained: nothing was tested
    assert [v.result for v in corrected([measured(0.03), measured(1.0)])] == ["undecided"] * 2


def test_every_mean_below_the_edge_has_to_be_steady_and_one_above_it_is_enough():
    def steady(*parts):
        """Of three seeds, by (mean, standard deviation)."""
        halves = tuple((mean, deviation * t_quantile(3) / math.sqrt(3)) for mean, deviation in parts)
        effect, half = max(halves)
        return judging._steady(evidence(effect - half, effect + half, largest_of=halves), NEGATIVE)

    assert steady((-3.1, 1.0), (-6.1, 2.0)) and not steady((-3.1, 1.0), (-6.1, 2.1))
    assert steady((3.1, 1.0), (1.0, 1.0)) and not steady((2.9, 1.0), (1.0, 1.0))


def rank(tau, p):
    return evidence(NAN, NAN, effect=tau, p=p)


def test_a_permutation_decides_by_its_own_p_value(verdict):
    options = {"kind": "rank agreement", "region": POSITIVE}
    assert verdict(rank(-2 / 3, 1 / 3), **options).result == "undecided"  # four rows
    assert verdict(rank(0.8, 0.01), **options).result == "same direction"
    assert verdict(rank(-0.8, 0.01), **options).result == "opposite direction"
    strong = {"kind": "ordering", "region": (-1.0, -0.5)}
    assert verdict(rank(-0.3, 0.01), **strong).result == "undecided"  # not zero, which says nothing of one half
    assert verdict(rank(0.3, 0.01), **strong).result == "opposite direction"


def test_the_p_value_is_of_the_edge_that_decides():
    assert side_and_p(evidence(-2.0, 0.0), (-INF, 0.0)) == ("inside", pytest.approx(0.05))
    side, p = side_and_p(evidence(0.4, 0.6), (0.0, 0.7))  # the nearer end, 0.2 away, counts
    assert side == "inside" and p == pytest.approx(2 * 0.00665, rel=0.01)  # t = 0.2 / 0.1 x 4.303 = 8.605, 2 degrees of freedom
    assert side_and_p(evidence(0.0, 0.1), (0.0, 0.2))[1] > side_and_p(evidence(0.0, 0.1, bounds=(0.0, 1.0)), (0.0, 0.2))[1]
    assert side_and_p(evidence(0.2, 0.4, bounds=(0.0, 1.0)), (1.0, 1.0))[0] == "outside"
    cut = over_seeds([1.0, 1.0, 0.95], bounds=(0.0, 1.0))  # its t-interval reaches above 1
    assert cut.interval[1] == 1.0 and side_and_p(cut, ALL)[1] == pytest.approx(stats.ttest_1samp([1.0, 1.0, 0.95], 1).pvalue)


def test_a_shorter_run_cannot_show_that_nothing_diverges(verdict):
    run = types.SimpleNamespace(steps=640, model="60m", variant="poet-fs-1_2")
    said = verdict(evidence(-2.3, -2.1, runs=(run,)), kind="divergence", region=(-0.05, INF))
    assert (said.result, said.note) == ("not at this scale", "640 steps cannot show how the paper's longer training ends")
    assert verdict(evidence(0.9, 1.1), kind="divergence", region=(-0.05, INF)).result == "same direction"  # it does diverge
    assert verdict(evidence(-1.1, -0.9), kind="convergence", region=NEGATIVE).result == "not at this scale"
    assert verdict(evidence(0.9, 1.1), kind="convergence", region=NEGATIVE).result == "opposite direction"
    assert verdict(evidence(-2.3, -2.1), kind="divergence", region=(-0.05, INF), scale="paper").result == "contradicted"


def measured(p, **options):
    """A verdict before the correction."""
    return judging.Verdict(scope="measured", result="undecided", p=p, pending="same direction", **options)


def test_holm_corrects_all_tested_claims_of_an_artifact():
    found = corrected([measured(0.02), measured(0.01), measured(NAN), measured(0.04)])
    assert [v.holm_p for v in found[:2]] == pytest.approx([0.04, 0.03]) and math.isnan(found[2].holm_p)
    assert [v.result for v in found] == ["same direction", "same direction", "undecided", "same direction"]
    weak = corrected([measured(0.02), measured(0.04), measured(0.9)])
    assert [v.result for v in weak] == ["undecided"] * 3
    assert weak[0].note == "p = 0.02 alone, 0.06 among the 3 claims of its artifact that were tested"
    assert all(v.pending == "" for v in weak)


def test_a_control_that_explains_an_effect_confounds_it(verdict):
    def with_control(found):
        return verdict(CLEAR, confounders=(Confounder(name="AdamW with two rates", measure=lambda grounds: found),))

    assert with_control(evidence(-1.1, -0.9)).result == "same direction"
    explained = with_control(evidence(0.4, 0.6))
    assert explained.result == "confounded" and explained.note.startswith("AdamW with two rates explains it")
    for open_, words in ((evidence(-0.5, 0.3), "the effect is"), (evidence(NAN, NAN), "a run diverged")):
        said = with_control(open_)
        assert said.result == "undecided" and said.note.startswith(f"control inconclusive: with AdamW with two rates {words}")
    assert with_control(None).note == "control not measured: AdamW with two rates"
    assert with_control(None).result == "not at this scale"
