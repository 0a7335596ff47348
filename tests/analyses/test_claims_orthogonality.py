"""Claims of Figures 10, 23 and 25: the verdict follows the errors, and one seed decides nothing."""

import math

import numpy as np
import pytest

from analyses.figures import figure10, figure23, figure25
from analyses.figures.common.orthogonality import PRINTED_TERMS
from analyses.figures.common.probed import layer
from poet.training.memory import PROJECTIONS
from suite.judging import side_of

CLAIMS = {claim.key: claim for figure in (figure10, figure23, figure25) for claim in figure.CLAIMS}
#: One run that diverges shows that runs can.
DIVERGENCE = "figure25-too-few-terms-diverge"


def measurement(size, resets=True, late=1.0):
    """``measure`` for the fixture.

    Args:
        size: error right before the first merge, of k.
        resets: whether the error falls back at merges; otherwise it goes on growing.
        late: of the error at the end of the run over that at its start.
    """

    def measure(spec, probe, steps):
        period, terms = spec.parameters["merge_every"], spec.parameters["neumann_terms"]
        since = (np.maximum(steps - 1, 0) % period + 1) / period if resets else steps / period
        values = size(terms) * since * late ** (steps / spec.steps) * (1 + 1e-3 * spec.seed)
        return {f"{layer(b, p)}.{s}": values.copy() for b in (0, 1) for p in PROJECTIONS for s in "RP"}  # the blocks shown

    return measure


def as_read(terms):
    """Within what was read off the figure, and a little lower with each term."""
    return {0: 0.4, 1: 0.25}.get(terms, 0.0055 - 0.0003 * terms)


def falling(spec, probe, steps):
    """k = 1 peaks at 0.25 and has come to 0.1 at the end of the first tenth; all fall from there on."""
    found = measurement(as_read, late=0.1)(spec, probe, steps)
    if spec.parameters["neumann_terms"] == 1:
        calm = np.where(steps > 2 * spec.parameters["merge_every"], 0.4, 1.0)
        found = {name: values * calm for name, values in found.items()}
    return found


def diverged(*terms):
    return lambda spec: {"status": "diverged"} if spec.parameters["neumann_terms"] in terms else {}


def sides(probed, measure, record=lambda spec: {}, seeds=(0, 1)):
    context = probed(figure10.ARTIFACT, measure, record, seeds=seeds)
    return {key: side_of(claim.measure(context), claim.region) for key, claim in CLAIMS.items()}


def test_data_like_the_papers_reproduce_every_claim(probed):
    assert sides(probed, falling, diverged(0)) == dict.fromkeys(CLAIMS, "inside")


def test_data_that_go_the_other_way_contradict_every_claim_but_one(probed):
    rising = measurement(lambda terms: 0.01 * 2.0**terms, resets=False, late=3.0)
    # That no run of three diverged does not say that none can.
    assert sides(probed, rising, diverged(3)) == dict.fromkeys(CLAIMS, "outside") | {DIVERGENCE: "neither"}


def test_one_seed_decides_nothing_but_that_runs_can_diverge(probed):
    assert sides(probed, falling, diverged(1), seeds=(0,)) == dict.fromkeys(CLAIMS, "neither") | {DIVERGENCE: "inside"}


def test_a_run_that_diverged_at_once_leaves_no_error_to_compare(probed):
    def cut(spec, probe, steps):
        found = falling(spec, probe, steps)
        return {name: values[:4] for name, values in found.items()} if spec.parameters["neumann_terms"] == 2 else found

    # k = 3 and k = 4 can still be compared, and k = 0 and 1 went on.
    assert sides(probed, cut) == dict.fromkeys(CLAIMS, "neither") | {"figure23-k3-like-k4": "inside"}


def test_one_term_of_one_matrix_and_one_merge_are_enough(probed):
    def one_off(spec, probe, steps):
        found, merge = falling(spec, probe, steps), 2 * spec.parameters["merge_every"]
        if spec.parameters["neumann_terms"] == 3:
            found[f"{layer(0, 'k_proj')}.P"] *= 1.2
            before, after = np.searchsorted(steps, (merge, merge + 1))
            shown = found[f"{layer(1, 'up_proj')}.R"]
            shown[after] = shown[before]
        return found

    # That no run of two diverged leaves open whether any can.
    assert sides(probed, one_off) == dict.fromkeys(CLAIMS, "inside") | {
        "figure10-merges-reset": "outside", DIVERGENCE: "neither"
    }  # fmt: skip


def test_three_and_four_terms_are_compared_by_their_difference(probed):
    sizes = (4, 3, 5, 0.02, 0.0012, 0.001)
    context = probed(figure10.ARTIFACT, measurement(lambda terms: sizes[terms]))
    assert CLAIMS["figure23-k3-like-k4"].measure(context).effect == pytest.approx(0.02 - 0.0012, rel=0.1)


def test_falls_are_taken_at_the_merges_before_the_end():
    at, values = np.arange(21), np.array([0, *[1, 2, 3, 4, 5] * 4], dtype=float)
    assert figure10.falls_at_merges(at, values, 5, 20).tolist() == [-4, -4, -4]
    assert figure10.falls_at_merges(at[:12], values[:12], 5, 11).tolist() == [-4, -4]


def test_the_order_of_terms():
    lower = np.array([[5 - k, 5.0 - k] for k in PRINTED_TERMS])
    found = figure10.order_of_terms([lower, lower])
    assert found.effect == pytest.approx(-1) and found.n == 2  # seeds, not matrices
    assert found.p == pytest.approx(2 / math.factorial(len(PRINTED_TERMS)))  # one order of k for all of them
    mixed = np.stack((lower[:, 0], lower[::-1, 0]), 1)
    assert figure10.order_of_terms([mixed]).effect == pytest.approx(0)
    assert math.isnan(figure10.order_of_terms([lower, np.where(lower == 3, np.nan, lower)]).effect)


def test_printed_ranges_have_half_a_unit_of_their_digits():
    ranges = figure10.printed_ranges()
    assert ranges[1, "end of the last merge period, first tenth"] == pytest.approx((0.05, 0.15))
    assert ranges[4, "end of the last merge period, first tenth"] == pytest.approx((0.0025, 0.0065))
    assert figure23.NEGLIGIBLE == pytest.approx((-0.003, 0.003))
