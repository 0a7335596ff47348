"""Intervals and p-values, by hand."""

import math

import pytest
from scipy import stats

from suite.statistics import agreement_p, holm, interval_p, paired_interval, permuted_kendall

NAN, INF = math.nan, math.inf


def test_the_interval_is_students():
    mean, low, high = paired_interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert high - mean == pytest.approx(4.302652729911275 / math.sqrt(3))  # t(0.975, 2) times the standard error
    assert mean - low == pytest.approx(high - mean)
    assert paired_interval([1.0, 2.0, 3.0], 0.99)[2] - mean == pytest.approx(9.924843200918 / math.sqrt(3))
    assert paired_interval([7.0]) == (7.0, -INF, INF)
    assert paired_interval([0.4] * 3) == (0.4, 0.4, 0.4), "seeds that agree have no width by rounding"


def test_the_p_value_of_an_interval_is_the_t_test_s():
    _, low, high = paired_interval([-1.0, -2.0, -3.0])
    assert interval_p(2.0, high + 2.0, 3) == pytest.approx(0.07417990022744)  # t = 2 sqrt 3 with two degrees of freedom
    assert interval_p(high + 2.0, high + 2.0, 3) == pytest.approx(0.05)  # the end of a 95% interval
    assert interval_p(1.0, 0.0, 3) == 0.0 and interval_p(0.0, 0.0, 3) == 1.0


def test_seeds_that_agree_are_a_sign_test():
    assert agreement_p(3) == 0.25 and agreement_p(5) > 0.05 > agreement_p(6) == pytest.approx(1 / 32)


#: Four rows in the printed order, and measured as (4, 3, 1, 2): five of six pairs are turned, tau = -2/3.
TURNED = [4.0, 3.0, 1.0, 2.0]


def test_four_rows_with_five_pairs_turned_have_a_sixth_one_sided():
    tau, p = permuted_kendall([([1, 2, 3, 4], [[v] for v in TURNED])])
    # Of 24 orders one turns six pairs and three turn five: 4 / 24 one-sided, twice that two-sided.
    assert tau == pytest.approx(-2 / 3) and p / 2 == pytest.approx(1 / 6)


def test_seeds_that_agree_are_no_further_evidence_of_an_order():
    assert permuted_kendall([([1, 2, 3, 4], [[v] * 3 for v in TURNED])])[1] == pytest.approx(1 / 3)


def test_the_sign_of_tau_says_which_side_is_counted():
    upward = permuted_kendall([([1, 2, 3, 4], [[-v] for v in TURNED])])
    assert upward == pytest.approx((2 / 3, 1 / 3))
    assert permuted_kendall([([1, 2, 3], [[1], [2], [3]])]) == pytest.approx((1.0, 2 / 6))
    assert permuted_kendall([([1, 2, 3, 4, 5], [[1], [2], [3], [4], [5]])]) == pytest.approx((1.0, 2 / 120))


def test_groups_that_agree_are_no_further_evidence_either():
    both = permuted_kendall([([1, 2, 3], [[1], [2], [3]])] * 2)
    assert both == pytest.approx((1.0, 2 / 6))
    apart = permuted_kendall([([1, 2, 3], [[1], [2], [3]]), ([1, 2, 3], [[3], [2], [1]])])
    assert apart == pytest.approx((0.0, 1.0))


def test_orders_of_many_rows_are_drawn_and_never_have_p_zero():
    rows = list(range(12))
    tau, p = permuted_kendall([(rows, [[row] for row in rows])])
    assert tau == pytest.approx(1.0) and p == pytest.approx(2 / 100_000)
    assert permuted_kendall([(rows, [[row] for row in rows[::-1]])]) == pytest.approx((-1.0, 2 / 100_000))


def test_ties_and_what_did_not_converge():
    assert permuted_kendall([([1, 2, NAN], [[5], [6], [NAN]])])[0] == pytest.approx(1.0)
    assert permuted_kendall([([1, 2, NAN], [[6], [7], [5]])])[0] == pytest.approx(-1 / 3)
    tau, _ = permuted_kendall([([1, 2, 2, 4], [[v] for v in TURNED])])
    assert tau == pytest.approx(stats.kendalltau([1, 2, 2, 4], TURNED).statistic)
    assert all(map(math.isnan, permuted_kendall([([1, 2, 3], [[5], [5], [5]])])))


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])  # 3 x 0.01, then 2 x 0.03, then no less than that
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == [] and holm([0.2]) == [0.2]
