"""Every case of the benchmark: timed by ``make bench``, called once and looked at by ``make test``."""

import math

import pytest

from benchmarks.rows import COLUMNS


def test_case(case, bench, benchmark, pytestconfig):
    """The line of a case: its times are pytest-benchmark's, with a call of its reference in front of each."""
    full = pytestconfig.getoption("benchmark_only")
    if full and case.flops > case.cpu_flops:
        why = f"{case.flops / 1e9:,.0f} GFLOP a call: more than a CPU is asked for"
        bench.left_out(case, why)
        pytest.skip(why)
    benchmark.group = f"{case.operation} {case.shape} {case.tokens or ''} {case.dtype}"

    def rounds_of(work, before, rounds):
        if not full:
            benchmark.disabled = True
            benchmark.pedantic(work.call, rounds=1)
            return bench.in_rounds(work, before, rounds)
        benchmark.pedantic(work.call, setup=before, rounds=rounds)
        return list(benchmark.stats.stats.data)

    row = bench.measure(case, rounds_of)
    benchmark.extra_info.update(row)
    check(case, row)


def check(case, row):
    """Whatever can be said of a line without saying that something is fast."""
    of_a_ratio = {"ratio", "ratio_p20", "ratio_p80", "predicted_ratio"}
    assert set(COLUMNS) - set(row) == {"note"} | (of_a_ratio if case.against is None else set())
    assert row["rounds"] >= case.least_rounds
    assert 0 < row["p20_s"] <= row["median_s"] <= row["p80_s"]
    assert 0 < row["held_bytes"] <= row["peak_bytes"]
    if case.against is None:
        assert "ratio" not in row
    else:
        assert 0 < row["ratio_p20"] <= row["ratio"] <= row["ratio_p80"]
        assert math.isfinite(row["predicted_ratio"]) and row["predicted_ratio"] > 0
    if case.plain:
        assert row["predicted_ratio"] == 1
    if case.operation in ("layer", "step"):
        assert row["flops"] > 0
