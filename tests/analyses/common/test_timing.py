"""Ratios of times that are taken in turn, on clocks whose answers are known."""

import pytest

from analyses.common.timing import Spread, in_turn, ratios


class Drifting:
    """A machine that gets slower with every call: call number i takes ``cost * (1 + i)``."""

    def __init__(self):
        self.calls = 0

    def __call__(self, call):
        self.calls += 1
        return call() * self.calls


def test_the_ratio_of_neighbours_survives_a_machine_that_changes():
    times = in_turn({"plain": lambda: 1.0, "double": lambda: 2.0}, 400, Drifting())
    assert Spread.of(ratios(times["double"], times["plain"])).median == pytest.approx(2, rel=0.01)
    one_after_another = Drifting()
    plain, double = ([one_after_another(lambda cost=cost: cost) for _ in range(400)] for cost in (1.0, 2.0))
    assert Spread.of(double).median / Spread.of(plain).median > 5  # what timing in blocks would have said


def test_every_call_has_its_turn_to_be_first():
    order = []
    in_turn({name: lambda name=name: order.append(name) for name in "abc"}, 4, lambda call: call() or 1.0)
    assert "".join(order) == "abc" "bca" "cab" "abc"


def test_a_spread_has_the_percentiles_of_its_values():
    spread = Spread.of([5.0, 1.0, 2.0, 4.0, 3.0, 6.0])
    assert (spread.median, spread.low, spread.high, spread.n) == (3.5, 2.0, 5.0, 6)
    assert spread.std == pytest.approx(3.5**0.5)
    alone = Spread.of([2.0])
    assert (alone.median, alone.low, alone.high, alone.n) == (2.0, 2.0, 2.0, 1) and alone.std != alone.std


def test_rounds_that_do_not_match_are_refused():
    with pytest.raises(ValueError):
        ratios([1.0, 2.0], [1.0])
