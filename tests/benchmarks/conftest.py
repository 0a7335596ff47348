"""Benchmarks under pytest: full size with ``--benchmark-only``, else every case once, so small that it is a test."""

import os
from pathlib import Path

import pytest
import torch

from benchmarks.bench import Bench
from benchmarks.cases import cpu_cases, small_cases
from benchmarks.rows import NAMES
from poet.launch.allocator import keep_freed_memory

TABLE = Path("results/bench.csv")
_BENCH = pytest.StashKey[Bench]()


def _full(config) -> bool:
    return config.getoption("benchmark_only")


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        found = cpu_cases() if _full(metafunc.config) else small_cases()
        metafunc.parametrize("case", found, ids=lambda case: case.id)


@pytest.fixture(scope="session")
def bench(pytestconfig):
    """The run that all cases of a session belong to."""
    made = Bench(path=TABLE) if _full(pytestconfig) else Bench(seconds=0.0)
    pytestconfig.stash[_BENCH] = made
    return made


@pytest.fixture(autouse=True)
def _all_cores(_reproducible, pytestconfig):
    """Times are those of the whole machine, and of a process that trains; tests take one thread."""
    if _full(pytestconfig):
        keep_freed_memory()
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))


def pytest_terminal_summary(terminalreporter, config):
    """Say where the table is, and what was left out of it."""
    made = config.stash.get(_BENCH, None)
    if made is None or not _full(config) or not made.rows:
        return
    left_out = [row for row in made.rows if row["rounds"] == 0]
    terminalreporter.write_line(f"{TABLE}: {len(made.rows) - len(left_out)} cases; left out: {len(left_out)}")
    for row in left_out:
        case = " ".join(str(row[name]) for name in NAMES if row[name] not in (None, ""))
        terminalreporter.write_line(f"  {case}: {row['note']}")
