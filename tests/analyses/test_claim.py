"""What is measured for claims, how it is judged, and how it is gathered."""

import dataclasses
import math
import re
from pathlib import Path

import pandas as pd
import pytest
from analyses.common.evidence import largest_difference, largest_of, over_seeds, rank_agreement, rank_correlation, share_of, with_p
from analyses.tables.claims import judged, line, named, summary
from scipy import stats
from suite.claim import NEGATIVE
from suite.context import Context
from suite.grounds import Grounds
from suite.judging import side_and_p, side_of
from suite.scale import load_scale
from suite.statistics import paired_interval
from tests.claims import artifact, claim, computed

NAN = math.nan


def test_seeds_give_a_mean_and_an_interval():
    found = over_seeds([-1.0, -2.0, -3.0], note="n")
    assert (found.effect, found.n, found.note) == (-2.0, 3, "n")
    assert (found.low, found.high) == paired_interval([-1.0, -2.0, -3.0])[1:]
    assert math.isnan(over_seeds([1.0, NAN]).effect) and side_of(over_seeds([-1.0, NAN]), NEGATIVE) == "neither"


def test_shares_have_their_exact_interval():
    found = share_of([True] * 10)
    assert (found.effect, found.high, found.n) == (1.0, 1.0, 10) and found.low == pytest.approx(0.025 ** (1 / 10))
    half = share_of([True, False] * 5)
    assert half.effect == 0.5 and (half.low, half.high) == pytest.approx((0.18708602844, 0.81291397155))


def test_shares_have_the_binomial_p_value():
    assert side_and_p(share_of([True] * 72), (0.9, 1.0)) == ("inside", pytest.approx(2 * 0.9**72))
    assert side_and_p(share_of([True] + [False] * 9), (0.9, 1.0)) == ("outside", pytest.approx(2 * (10 * 0.9 * 0.1**9 + 0.1**10)))
    assert side_and_p(share_of([False] * 6), (math.nextafter(0, 1), 1.0))[0] == "outside"


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
    assert side_of(largest_of([first, [1.0, NAN, 1.0]]), NEGATIVE) == "neither"


def test_the_largest_of_several_is_as_sure_as_what_could_undo_it():
    def p_of(comparisons, region=NEGATIVE):
        return side_and_p(largest_of(comparisons), region)[1]

    sure, unsure = [-1.0, -1.001, -0.999], [-2.0, -1.6, -2.4]
    assert p_of([sure, unsure]) == pytest.approx(stats.ttest_1samp(unsure, 0).pvalue)  # both have to be below zero
    assert p_of([sure]) == pytest.approx(stats.ttest_1samp(sure, 0).pvalue)
    above = [1.0, 1.2, 0.8]
    assert p_of([above, sure]) == pytest.approx(2 * stats.ttest_1samp(above, 0).pvalue)  # one of two is enough
    assert p_of([above, sure], (0.5, math.inf)) == pytest.approx(2 * stats.ttest_1samp(above, 0.5).pvalue)
    assert p_of([[-1.0] * 3]) == 0.25 and math.isnan(p_of([[1.0]]))


@pytest.fixture
def cells(recorded):
    """``cells(values)``: a context, and the runs of {row: perplexity by seed} on 60m."""

    def _cells(values):
        seeds = range(len(next(iter(values.values()))))
        scale = load_scale({"scale": "mini", "seeds": list(seeds)})
        runs = {row: [scale.run("60m", row, seed) for seed in seeds] for row in values}
        every = lambda scale: [spec for specs in runs.values() for spec in specs]
        context = recorded(artifact(runs=every), lambda s: {"validation_perplexity": values[s.variant][s.seed]}, seeds=tuple(seeds))
        return context, *runs.values()

    return _cells


def test_perplexities_are_compared_by_seed(cells):
    context, poet, adamw = cells({"poet-fs-1_2": [50.0, 61.0, 72.0], "adamw": [51.0, 63.0, 75.0]})
    found = largest_difference(context, [(poet, adamw)])
    plain = over_seeds([-1.0, -2.0, -3.0], (*poet, *adamw))  # of 12 between seeds nothing is left
    assert found == dataclasses.replace(plain, compared=((poet[0], adamw[0]),), largest_of=found.largest_of)


def test_a_diverged_run_is_said(cells):
    context, poet, adamw = cells({"poet-fs-1_2": [50.0, NAN], "adamw": [51.0, 63.0]})
    found = largest_difference(context, [(poet, adamw)])
    assert math.isnan(found.effect) and found.note == "diverged: 1 of 2 pairs"
    both = largest_difference(context, [(adamw, adamw), (poet, adamw)])
    assert math.isnan(both.effect) and both.note == "diverged: 1 of 4 pairs"


def test_the_largest_difference_says_whose_it_is(cells):
    rows = {"poet-fs-1_2": [50.0, 61.0], "adamw": [60.0, 71.5], "galore": [52.0, 63.5]}
    context, poet, adamw, galore = cells(rows)
    found = largest_difference(context, [(poet, adamw), (poet, galore)])
    assert found.effect == -2.25 and found.note == "the largest of 2: 60m/poet-fs-1_2 minus 60m/galore"
    assert found.runs == (*poet, *adamw, *galore)  # each once
    assert found.compared == ((poet[0], adamw[0]), (poet[0], galore[0]))


def test_rank_agreement_is_the_mean_over_seeds_and_has_a_permutation_p_value(cells):
    rows = {"adamw": [1.0, 3.0], "galore": [2.0, 2.0], "lora-r64": [3.0, 1.0]}
    context, *specs = cells(rows)
    found = rank_agreement(context, [10.0, 20.0, 30.0], specs)
    assert found.effect == 0.0 and math.isnan(found.low) and found.p == 1.0 and found.n == 2  # one and minus one
    assert found.note == "3 rows"
    context, *specs = cells({"adamw": [1.0, 1.5], "galore": [2.0, 2.5], "lora-r64": [3.0, 3.5]})
    found = rank_agreement(context, [10.0, 20.0, 30.0], specs)
    assert (found.effect, found.p, found.note) == pytest.approx((1.0, 1 / 3, "3 rows"))


def test_what_does_not_converge_ranks_last(cells):
    context, *specs = cells({"adamw": [1.0, 1.0], "galore": [2.0, 2.0], "lora-r64": [NAN, NAN]})
    assert rank_agreement(context, [10.0, 20.0, NAN], specs).effect == 1.0
    assert rank_agreement(context, [NAN, 20.0, 10.0], specs).effect == -1.0


def test_correlations_are_averaged_over_groups():
    falling, rising = [[3.0], [2.0], [1.0]], [[1.0], [2.0], [3.0]]
    assert rank_correlation([([1, 2, 3], falling)]).effect == -1.0
    found = rank_correlation([([1, 2, 3], falling), ([1, 2, 3], rising), ([1, 2, 3], rising)])
    assert found.effect == pytest.approx(1 / 3) and found.n == 1 and found.bounds == (-1.0, 1.0)


def test_a_rank_correlation_in_words():
    assert with_p(rank_correlation([([1, 2, 3], [[1.0], [2.0], [3.0]])])) == "1.00 (permutation p = 0.33, 1 seed)"
    assert with_p(rank_correlation([([1, 2, 3], [[1.0, NAN], [2.0, NAN], [3.0, NAN]])])) == "not defined (in some seed all rows end alike)"


# How claims are gathered.


def unmeasured(context):
    raise AssertionError("this scale does not judge it")


def at(name, tmp_path):
    return Context(load_scale({"scale": name, "seeds": [0]}), tmp_path)


def test_runs_are_named_once_with_their_seeds():
    scale = load_scale({"scale": "mini", "seeds": [0, 2]})
    poet, adamw = ([scale.run("60m", row, seed) for seed in (2, 0)] for row in ("poet-fs-1_2", "adamw"))
    assert named([*poet, *adamw, *poet]) == "60m/poet-fs-1_2{0,2} 60m/adamw{0,2}" and named([]) == ""


def lined(name, about, context):
    """The lines of an artifact's claims."""
    grounds = Grounds(context, [])
    return [line(name, about, *found, context) for found in judged(name, about, context, grounds)]


def test_a_line_has_the_claim_and_what_was_found(tmp_path):
    context = at("mini", tmp_path)
    specs = [context.scale.run("60m", "muon", seed) for seed in (3, 1)]
    measure = lambda context: over_seeds([-1.0, -1.5], specs, "two")
    (found,) = lined("t", artifact(claims=(claim(measure=measure, kind="timing"),)), context)
    assert (found["claim"], found["artifact"], found["says"], found["unit"]) == ("t-c", "t", "It falls.", "nats")
    assert (found["region_low"], found["region_high"]) == NEGATIVE
    assert found["effect"] == -1.25 and (found["low"], found["high"]) == paired_interval([-1.0, -1.5])[1:]
    assert (found["n"], found["note"], found["runs"], found["seeds"]) == (2, "two", "60m/muon{1,3}", "1 3")
    assert found["p"] == found["holm_p"] == pytest.approx(0.12566591637800)
    assert (found["scope"], found["result"], found["fitness"]) == ("measured", "undecided", "")
    assert found["scale"] == "mini" and "enwik8" in found["corpus"]


def test_an_order_at_a_scale_whose_controls_were_not_trained_is_not_judged(tmp_path):
    context = at("mini", tmp_path)
    specs = [context.scale.run("60m", row, 0) for row in ("muon", "adamw")]
    (found,) = lined("t", artifact(claims=(claim(measure=lambda context: over_seeds([-1.0, -1.01, -1.02], specs)),)), context)
    assert found["result"] == "not at this scale" and "not measured: full training beats LoRA" in found["fitness"]
    assert found["note"].startswith("control ") and found["effect"] == pytest.approx(-1.01)  # measured and shown all the same


def test_what_a_scale_cannot_show_is_not_measured(tmp_path):
    mini, smoke, gpu = (at(name, tmp_path) for name in ("mini", "smoke", "gpu"))
    cases = [
        (smoke, {}, claim(measure=unmeasured), "plumbing"),
        (mini, {}, claim(measure=unmeasured, paper_only="too small"), "too small"),
        (gpu, {"models": ("3b",)}, claim(measure=unmeasured), "no model 3b"),
        (gpu, {}, claim(measure=unmeasured, models=("1.3b",)), "no model 1.3b"),
    ]
    for context, about, asked, why in cases:
        (found,) = lined("t", artifact(claims=(asked,), **about), context)
        assert found["result"] == "not at this scale" and why in found["note"]
        assert found["n"] == 0 and math.isnan(found["effect"]) and found["runs"] == ""


def test_what_is_exact_is_judged_at_every_scale(tmp_path):
    (found,) = lined("t", computed(claims=(claim(),)), at("smoke", tmp_path))
    assert (found["result"], found["scale"], found["corpus"]) == ("confirmed", "any", "")
    (counted,) = lined("t", artifact(claims=(claim(exact=True),)), at("smoke", tmp_path))
    assert (counted["result"], counted["scope"]) == ("confirmed", "exact")


def test_holm_s_correction_is_within_an_artifact(tmp_path):
    values = [-1.0, -1.3, -1.6]  # p = 0.0173 each
    some = [claim(key=f"t-{i}", kind="timing", measure=lambda context: over_seeds(values)) for i in range(3)]
    (alone,) = lined("t", artifact(claims=tuple(some[:1])), at("mini", tmp_path))
    assert alone["result"] == "same direction" and alone["holm_p"] == alone["p"] == pytest.approx(0.01729, abs=1e-5)
    three = lined("t", artifact(claims=tuple(some)), at("mini", tmp_path))
    assert {found["result"] for found in three} == {"undecided"} and three[0]["holm_p"] == pytest.approx(3 * alone["p"])


def test_the_summary_counts_results_by_scope():
    frame = pd.DataFrame({
        "result": ["confirmed", "refuted", "same direction", "not at this scale"],
        "scope": ["exact", "exact", "measured", "measured"], "kind": ["number", "number", "trend", "ordering"],
    })
    assert summary(frame) == [
        "4 claims.", "exact (2): 1 confirmed, 1 refuted.", "measured (2): 1 same direction, 1 not at this scale.",
        "measured, ordering (1): 1 not at this scale.", "measured, trend (1): 1 same direction.",
    ]


def words(text):
    """A page without the name of the project."""
    return text.replace("POET, reproduced", "").lower()


def test_no_claim_about_a_trained_model_is_called_reproduced_at_a_small_scale():
    root = Path(__file__).resolve().parents[2]
    pages = [page for scale in ("mini", "night") for kind in ("md", "csv") for page in (root / "analyses" / "recorded" / scale).glob(f"*.{kind}")]
    assert len(pages) > 30
    for page in pages:
        assert not re.search(r"\b(reproduced|contradicted)\b", words(page.read_text())), page.name
