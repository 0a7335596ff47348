"""The benchmark on a GPU: ``make bench-gpu``, or ``python -m benchmarks.gpu`` in the root of the repository.

Needs torch, Triton, transformers, numpy and pydantic, and no network. All kernels are checked against fp64 before anything is
timed; a wrong kernel ends the run. Writes ``results/bench-gpu.csv``.
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from benchmarks.bench import Bench
from benchmarks.case import Case
from benchmarks.cases import gpu_cases
from benchmarks.rows import NAMES
from poet.system.errors import UserError, command_line

TABLE = Path("results/bench-gpu.csv")
#: Seconds after which no further case is begun; the current one is finished.
TIME = 420


class CudaTimer:
    """Seconds of a call by the GPU's own clock, with its cache flushed before.

    The host launches the call's kernels while the GPU still flushes its cache, as it runs ahead of the GPU in training. So the
    time is that of the GPU's work, unless launching takes longer than flushing.
    """

    def __init__(self) -> None:
        self._flush = torch.empty(2**28, dtype=torch.int32, device="cuda")  # 1 GiB, several times any cache

    def __call__(self, call: Callable[[], object]) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        self._flush.zero_()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3


def run(cases: Iterable[Case], bench: Bench, *, limit: float = TIME, say: Callable[[str], None] = print) -> None:
    """Check every kernel, then measure the cases in the list's order, until ``limit`` seconds have passed.

    Raises:
        WrongResult: a kernel is wrong; no case has been timed then.
    """
    begin, cases = time.monotonic(), list(cases)
    for case in cases:
        if case.operation not in ("layer", "step"):
            bench.checked_error(case, bench.set_up(case))
    say(f"every kernel agrees with fp64 ({time.monotonic() - begin:.0f} s)")
    for number, case in enumerate(cases, 1):
        if case.needs and importlib.util.find_spec(case.needs) is None:
            bench.left_out(case, f"needs {case.needs}")
        elif time.monotonic() - begin > limit:
            bench.left_out(case, f"no time left of {limit} s")
        else:
            row = bench.measure(case, bench.in_rounds)
            say(f"[{time.monotonic() - begin:4.0f} s, {number}/{len(cases)}] {summary(row)}")


def summary(row: dict) -> str:
    """A line of the table as a readable sentence."""
    names = " ".join(str(row[name]) for name in NAMES if row[name] not in (None, ""))
    if row["rounds"] == 0:
        return f"{names}: left out, {row['note']}"
    parts = [f"{1e3 * row['median_s']:.3f} ms"]
    if "ratio" in row:
        parts.append(f"ratio {row['ratio']:.3f} (predicted {row['predicted_ratio']:.3f})")
    parts.append(f"peak {row['peak_bytes'] / 2**20:.0f} MiB")
    if row["relative_error"] is not None:
        parts.append(f"error {row['relative_error']:.1e}")
    return f"{names}: " + ", ".join(parts)


@command_line
def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--select", default="", help="only cases whose name contains this, such as layer-4096x14336")
    parser.add_argument("--seconds", type=float, default=TIME, help="begin no further case after so many")
    given = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        raise UserError("there is no GPU that torch can use: make bench measures the CPU")
    cases = [case for case in gpu_cases() if given.select in case.id]
    if not cases:
        raise UserError(f"no case has {given.select!r} in its name: names are like {next(iter(gpu_cases())).id}")
    bench = Bench("cuda", timer=CudaTimer(), seconds=0.5, most_rounds=50, path=TABLE)
    run(cases, bench, limit=given.seconds)
    first, left_out = bench.rows[0], sum(row["rounds"] == 0 for row in bench.rows)
    print(f"\n{first['device']}, torch {first['torch']}, triton {first['triton']}: {TABLE}")
    print(f"{len(bench.rows) - left_out} cases measured, {left_out} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
