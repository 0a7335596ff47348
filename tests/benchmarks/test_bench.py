"""What stands in a line of the table, on a clock and a machine whose answers are known."""

import csv
import io
import math

import pytest
import torch

from benchmarks.bench import TOLERANCE, Bench, WrongResult
from benchmarks.case import Case, Periodic, Work
from benchmarks.rows import COLUMNS, as_csv


class Clock:
    """Calls say how long they take; every call is slower than the one before, as on a machine that others use."""

    def __init__(self, drift=1.0):
        self.factor, self.drift, self.order = 1.0, drift, []

    def __call__(self, call):
        self.factor *= self.drift
        name, seconds = call()
        self.order.append(name)
        return seconds * self.factor


def case(variant, seconds, *, reference=None, error=None, periodic=None, flops=2e9, **options):
    def build(device):
        return Work(lambda: (variant, seconds), lambda: [torch.zeros(256)], periodic=periodic, error=error)

    names = {"operation": "step", "shape": "s", "dtype": "fp32", "least_rounds": 5}
    return Case(**names, variant=variant, count=lambda: flops, build=build, reference=reference, **options)


@pytest.fixture
def bench():
    return Bench(timer=Clock(drift=1.05), seconds=0.0, peak=lambda call, device: 1000)


def test_the_ratio_is_of_neighbours_in_time(bench):
    plain = case("plain", 1.0, plain=True)
    row = bench.measure(case("poet", 3.0, reference=plain, flops=5e9), bench.in_rounds)
    assert row["ratio"] == pytest.approx(3 * 1.05)  # the machine got so much slower between the two
    assert row["ratio_p20"] == pytest.approx(row["ratio_p80"])
    assert row["p80_s"] / row["p20_s"] > 1.2  # while the times themselves wander
    assert row["predicted_ratio"] == 2.5
    assert bench.timer.order[-10:] == ["plain", "poet"] * 5


def test_the_plain_case_is_compared_with_itself(bench):
    row = bench.measure(case("plain", 2.0, plain=True), bench.in_rounds)
    assert row["ratio"] == pytest.approx(1.05)
    assert row["predicted_ratio"] == 1


def test_what_is_due_now_and_then_is_spread_over_the_calls(bench):
    bench.timer = Clock()
    prepared = []
    merge = Periodic(lambda: ("merge", 0.5), every=4, prepare=lambda: prepared.append(1))
    plain = case("plain", 1.0, plain=True)
    row = bench.measure(case("poet", 3.0, reference=plain, periodic=merge), bench.in_rounds)
    assert row["median_s"] == row["ratio"] == 3.125
    assert len(prepared) == bench.timer.order.count("merge") == 4  # two seconds of them; of rarer ones, at most three
    decomposition = Periodic(lambda: ("svd", 20.0), every=200)
    galore = case("galore", 3.0, reference=plain, periodic=decomposition)
    assert bench.measure(galore, bench.in_rounds)["ratio"] == 3.1
    assert bench.timer.order.count("svd") == 1


def test_what_a_merge_does_to_the_next_call_is_the_merges(bench):
    """A merge of half a second makes the call after it cheaper by 0.3; due every other call, each is timed often."""
    bench.timer = lambda call: bench.seconds_of(call)
    merged = []

    def seconds_of(call):
        merged.clear()
        name, seconds = call() or ("both", None)
        return 0.5 + 2.7 if merged else seconds

    bench.seconds_of = seconds_of
    merge = Periodic(lambda: merged.append(1), every=2, then=lambda: None)
    plain = case("plain", 1.0, plain=True)
    row = bench.measure(case("poet", 3.0, reference=plain, periodic=merge), bench.in_rounds)
    assert row["median_s"] == pytest.approx(3.1)


def test_a_case_has_its_own_number_of_threads(bench):
    before, seen = torch.get_num_threads(), []
    bench.timer = lambda call: seen.append(torch.get_num_threads()) or 1.0
    assert bench.measure(case("poet", 1.0, threads=before + 1), bench.in_rounds)["threads"] == before + 1
    assert set(seen) == {before + 1} and torch.get_num_threads() == before


def test_what_a_call_takes_is_added_to_what_is_held(bench):
    row = bench.measure(case("plain", 0.01, plain=True), bench.in_rounds)
    assert (row["held_bytes"], row["peak_bytes"]) == (1024, 2024)


def test_every_line_is_written_at_once(bench, tmp_path):
    bench.path = tmp_path / "bench.csv"
    for number in (1, 2):
        bench.measure(case("plain", 0.01, plain=True), bench.in_rounds)
        assert bench.path.read_text() == as_csv(bench.rows)
        assert len(bench.rows) == number


@pytest.mark.parametrize("wrong", [2 * TOLERANCE["fp32"], math.nan, math.inf])
def test_a_wrong_kernel_is_not_timed(bench, wrong):
    with pytest.raises(WrongResult, match=r"step-s-fp32-poet on cpu: the relative error to fp64 is (0.0002|nan|inf)"):
        bench.measure(case("poet", 1.0, error=lambda: wrong), bench.in_rounds)
    assert bench.timer.order == [] and bench.rows == []


def test_a_right_kernel_has_its_error_in_its_line_and_no_ratio(bench):
    row = bench.measure(case("poet", 1.0, error=lambda: 1e-7), bench.in_rounds)
    assert row["relative_error"] == 1e-7
    assert "ratio" not in row


def test_long_calls_have_their_least_rounds_and_short_ones_no_more_than_the_most():
    bench = Bench(seconds=1.0, most_rounds=30)
    rounds = case("poet", 1.0)
    assert [bench.rounds(rounds, seconds) for seconds in (10.0, 0.1, 1e-6)] == [5, 10, 30]


def test_the_file_has_every_column_and_says_what_was_left_out(bench):
    bench.measure(case("poet", 1.0), bench.in_rounds)
    bench.left_out(case("large", 1.0, flops=9e99), "too large")
    lines = list(csv.DictReader(io.StringIO(as_csv(bench.rows))))
    assert [list(line) for line in lines] == [list(COLUMNS)] * 2
    assert lines[0]["ratio"] == "" and lines[0]["rounds"] == "5" and lines[0]["note"] == ""
    assert lines[1]["median_s"] == "" and lines[1]["rounds"] == "0" and lines[1]["note"] == "too large"
    for name in ("device", "torch", "python", "threads"):
        assert lines[0][name] and lines[0][name] == lines[1][name]


def test_a_set_up_case_is_dropped_when_another_begins(bench):
    plain = case("plain", 1.0, plain=True)
    for variant in ("one", "two"):
        bench.measure(case(variant, 1.0, reference=plain), bench.in_rounds)
    assert sorted(bench._set_up) == ["step-s-fp32-plain", "step-s-fp32-two"]
