"""What claims are made of: printed digits, shares, and lines of tables."""

import math
import types

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analyses.common.evidence import as_read, but_for, of_line, share_agreeing, share_in


@pytest.mark.parametrize(
    ("printed", "low", "high"),
    [("0.62", 0.615, 0.625), ("11", 10.5, 11.5), ("2.6", 2.55, 2.65), ("0.920", 0.9195, 0.9205), ("3e-3", 0.0025, 0.0035)],
)
def test_a_printed_number_stands_for_what_rounds_to_it(printed, low, high):
    assert as_read(printed) == pytest.approx((low, high))


def test_shares_count_both_ends_and_a_missing_value_spoils_them():
    assert share_in((0.6, 0.65), [np.array([0.6, 0.65, 0.66, 0.1])]).effect == 0.5
    assert math.isnan(share_in((0.6, 0.65), [np.array([0.6, math.nan]), np.array([0.6, 0.6])]).effect)


def test_the_interval_of_a_share_stays_between_0_and_1():
    most, all_of_them = np.array([0.0] + 9 * [1.0]), np.ones(10)
    found = share_in((1.0, 1.0), [most, all_of_them, all_of_them])
    assert (found.interval[0] > 0.7, found.interval[1], found.n) == (True, 1.0, 3)
    alone = share_in((1.0, 1.0), [all_of_them])
    assert alone.interval == (0.0, 1.0)


def test_a_line_has_the_t_interval_of_its_draws():
    draws = np.array([1.0, 2.0, 4.0, 5.0])
    line = types.SimpleNamespace(measured=draws.mean(), std=draws.std(ddof=1), n=4)
    expected = stats.t.interval(0.95, 3, draws.mean(), stats.sem(draws))
    found = of_line(line)
    assert (found.low, found.high) == pytest.approx(expected) and found.n == 4


def test_lines_that_do_not_agree_are_named_once_and_not_all():
    frame = pd.DataFrame({"name": list("abcdefg"), "more": ["x", None, *"xxxxx"], "ok": ["yes", *["no"] * 6]})
    found = share_agreeing(frame, "ok", ("name", "more"))
    assert (found.effect, found.low, found.high, found.n) == (1 / 7, 1 / 7, 1 / 7, 7)
    assert found.note == "not so: b; c x; d x; e x; and 2 more"
    assert but_for([]) == "" and but_for(["a", "a"]) == "not so: a"
