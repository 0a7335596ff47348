"""The simulation of the check's false alarms, on made-up numbers."""

import numpy as np

from suite.check import alarms, spread
from suite.check.spread import RecordedNumber

CHECKS = 60


def numbers(rows=36):
    """Rows around 100 that spread by 1%, each with the deviation of three seeds."""
    deviations = np.random.default_rng(3).standard_normal((rows, 3)).std(1, ddof=1)
    return [RecordedNumber(100.0 + i, float(s), 3, 3, "perplexity", 0, "table2") for i, s in enumerate(deviations)]


def test_rows_that_spread_alike_seldom_alarm_and_the_same_draws_alarm_as_often():
    first, second = (alarms.alarms(numbers(), CHECKS, np.random.default_rng(0)) for _ in range(2))
    assert first == second <= 0.15 * CHECKS  # 5% and three standard errors


def test_narrow_tolerances_alarm_more_often(monkeypatch):
    """The simulation tells a broken check from a working one."""
    monkeypatch.setattr(spread, "LEVEL", 0.999)
    assert alarms.alarms(numbers(), CHECKS, np.random.default_rng(0)) > 0.3 * CHECKS  # about 1 - 1 / e of them


def test_every_recorded_number_with_a_spread_is_drawn():
    found = alarms.recorded("mini")
    assert len(found) > 1000 and {one.n for one in found} >= {3}
