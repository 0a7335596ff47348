"""The search of the protocol on surfaces whose minimum is known."""

import math
import random

import pytest

from suite.tuning.search import search


def run(surface, start, trials, order=None, at_most=0):
    """Search to the end; ``order`` shuffles in which order the trials of a round end."""
    known = {}
    for _ in range(1000):
        decision = search(start, known, trials, at_most)
        if not decision.next:
            return decision, known
        asked = list(decision.next)
        if order is not None:  # one alone, out of order: the rest comes in a later call
            asked = [order.choice(asked)]
        known |= {point: surface(point) for point in asked}
    raise AssertionError("the search does not end")


def bowl(*minimum):
    return lambda point: 10.0 + sum((a - b) ** 2 for a, b in zip(point, minimum, strict=True))


def test_the_first_trials_are_the_start_and_then_its_neighbours_in_each_rate():
    first = search((3, -2), {}, 8, 0)
    assert (first.state, first.next, first.best) == ("searching", ((3, -2),), None)
    second = search((3, -2), {(3, -2): 1.0}, 8, 0)
    assert set(second.next) == {(2, -2), (4, -2), (3, -3), (3, -1)}
    one = search((3,), {(3,): 1.0}, 8, 0)
    assert set(one.next) == {(2,), (4,)}


@pytest.mark.parametrize(("minimum", "trials"), [((0, 0), 5), ((1, 0), 8), ((0, -1), 8), ((1, 1), 12), ((2, 0), 12)])
def test_a_minimum_near_the_start_is_found_with_neighbours_on_every_side(minimum, trials):
    decision, known = run(bowl(*minimum), (0, 0), trials)
    assert (decision.state, decision.best, decision.open_sides) == ("finished", minimum, ())
    x, y = minimum
    assert {(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)} <= set(decision.tried)
    assert len(decision.tried) == len(known) == trials  # every row has as many


def test_what_is_left_goes_to_diagonal_neighbours_and_then_further_out():
    decision, _ = run(bowl(0, 0), (0, 0), 9)
    assert set(decision.tried[5:]) == {(-1, -1), (-1, 1), (1, -1), (1, 1)}
    decision, _ = run(bowl(0, 0), (0, 0), 13)
    assert set(decision.tried[9:]) == {(-2, 0), (2, 0), (0, -2), (0, 2)}
    decision, _ = run(bowl(0), (0,), 7)
    assert decision.tried == ((0,), (-1,), (1,), (-2,), (2,), (-3,), (3,))


def test_a_valley_along_a_diagonal_is_followed():
    def valley(point):
        return 10.0 + (point[0] - point[1]) ** 2 * 4 + (point[0] - 2) ** 2

    decision, _ = run(valley, (0, 0), 30)
    assert (decision.state, decision.best) == ("finished", (2, 2))


def test_a_choice_at_the_end_of_what_was_tried_extends_it_until_the_trials_are_used():
    decision, _ = run(lambda point: -point[0], (0,), 8)
    assert (decision.state, decision.best, decision.open_sides) == ("censored", (6,), ((0, 1),))
    assert len(decision.tried) == 8
    decision, _ = run(lambda point: point[0] + point[1] ** 2, (0, 0), 12)
    assert decision.state == "censored" and (0, -1) in decision.open_sides


def test_a_search_that_would_be_censored_goes_on_until_the_choice_lies_inside_and_no_further():
    assert run(bowl(2, 1), (0, 0), 5)[0].state == "censored"
    decision, _ = run(bowl(2, 1), (0, 0), 5, at_most=20)
    assert (decision.state, decision.best) == ("finished", (2, 1))
    shorter = [run(bowl(2, 1), (0, 0), 5, at_most=count)[0].state for count in range(5, len(decision.tried))]
    assert set(shorter) == {"censored"}
    assert run(bowl(0, 0), (0, 0), 5, at_most=20)[0] == run(bowl(0, 0), (0, 0), 5)[0]
    decision, _ = run(lambda point: -point[0], (0,), 3, at_most=7)
    assert (decision.state, len(decision.tried)) == ("censored", 7)


def test_the_budget_is_kept_and_a_choice_without_neighbours_is_censored():
    for trials in range(1, 13):
        decision, known = run(bowl(0, 0), (0, 0), trials)
        assert len(decision.tried) == len(known) == trials
        assert decision.best == (0, 0), trials
        assert decision.state == ("finished" if trials >= 5 else "censored"), trials


def test_a_run_that_diverged_counts_as_a_worse_neighbour():
    def cliff(point):
        return math.nan if point[0] > 1 else -float(point[0])

    decision, _ = run(cliff, (0,), 6)
    assert (decision.state, decision.best) == ("finished", (1,))
    assert (2,) in decision.tried
    decision, _ = run(lambda point: math.inf if point[0] > 1 else -float(point[0]), (0,), 6)
    assert (decision.state, decision.best) == ("finished", (1,))


def test_a_start_that_diverges_is_left_towards_smaller_rates():
    decision, _ = run(lambda point: math.nan if sum(point) > -4 else 1.0 + (point[0] + 3) ** 2 + (point[1] + 3) ** 2, (0, 0), 24)
    assert decision.best == (-3, -3) and decision.state == "finished"


def test_nothing_is_chosen_where_every_run_diverged():
    decision, _ = run(lambda point: math.nan, (0, 0), 12)
    assert (decision.state, decision.best, decision.open_sides) == ("censored", None, ())


def test_of_two_equal_ones_the_smaller_rates_are_chosen():
    decision, _ = run(lambda point: 1.0 if point in ((0, 0), (-1, 0), (0, -1)) else 2.0, (0, 0), 12)
    assert decision.best == (-1, 0)  # of equal sums the first rate is the smaller one
    decision, _ = run(lambda point: 1.0 if point in ((0, 1), (1, -1)) else 2.0, (0, 0), 25)
    assert decision.best == (1, -1)  # its sum is smaller, and its first rate is not
    decision, _ = run(lambda point: 1.0, (0,), 5)
    assert (decision.best, decision.state) == ((-3,), "censored")  # flat as far as it was tried


def test_the_order_in_which_trials_end_changes_nothing():
    for seed in range(20):
        noise, values = random.Random(seed), {}

        def surface(point, noise=noise, values=values):
            return values.setdefault(point, math.nan if noise.random() < 0.15 else noise.random() + 0.1 * sum(x * x for x in point))

        straight, known = run(surface, (0, 1), 12)
        shuffled, again = run(surface, (0, 1), 12, order=random.Random(seed + 100))
        assert straight == shuffled and set(known) == set(again), seed
        backwards = dict(reversed(known.items()))
        assert search((0, 1), backwards, 12, 0) == straight, seed


def test_what_was_not_asked_for_is_not_looked_at():
    decision, known = run(bowl(0, 0), (0, 0), 8)
    stray = {(9, 9): -100.0}
    assert search((0, 0), known | stray, 8, 0) == decision


def test_half_a_round_is_waited_for():
    known = {(0,): 2.0, (1,): 1.0}
    decision = search((0,), known, 8, 0)
    assert (decision.state, decision.next, decision.tried) == ("searching", ((-1,),), ((0,),))
