"""A benchmark run on one device: sets cases up, times each in turn with its reference, and makes the lines of the table."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from analyses.common.timing import Spread, Timer, ratios, wall_clock
from benchmarks.case import Case, Work
from benchmarks.memory import held_bytes, peak_bytes
from benchmarks.rows import COLUMNS, NAMES, as_csv, environment
from poet.system.errors import UserError
from poet.system.files import write_text

#: Largest relative error of a correct kernel by dtype: some tens of roundings of the format.
TOLERANCE = {"fp32": 1e-4, "bf16": 2e-2, "fp16": 4e-3}
#: Seconds in all after which periodic work (a merge, a decomposition) is not timed again: its share of a step is small.
LONG = 2.0
#: Largest period in calls of work that is timed as often as the shortest call: its share of a step is large.
FEW = 10


class WrongResult(UserError):
    """A kernel's result differs from that in fp64 by more than the tolerance."""


@contextlib.contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Set the number of torch's threads inside the block; None leaves it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass
class Bench:
    """A benchmark run on one device."""

    device: str = "cpu"  # "cpu" or "cuda"
    timer: Timer = wall_clock  # seconds of one call
    seconds: float = 0.6  # time to spend on the rounds of one case, its reference included
    most_rounds: int = 30  # of a case, however short a call is
    peak: Callable[[Callable[[], object], str], int] = peak_bytes  # as :func:`benchmarks.memory.peak_bytes`
    #: file that is written anew with each line, so that a run that is cut short keeps its lines
    path: Path | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    _set_up: dict[str, Work] = field(default_factory=dict)
    _before: dict[str, int] = field(default_factory=dict)
    _errors: dict[str, float] = field(default_factory=dict)

    def set_up(self, case: Case, keep: Case | None = None) -> Work:
        """The work of a case, set up if it is not yet. The work of all cases but this one and ``keep`` is dropped first."""
        for name in [name for name in self._set_up if name not in (case.id, keep.id if keep else None)]:
            del self._set_up[name]
        if case.id not in self._set_up:
            before = torch.cuda.memory_allocated() if self.device == "cuda" else 0
            self._set_up[case.id], self._before[case.id] = case.build(self.device), before
        return self._set_up[case.id]

    def rounds(self, case: Case, seconds: float) -> int:
        """The number of rounds for a case whose call takes ``seconds``, its reference's call included."""
        return max(case.least_rounds, min(self.most_rounds, round(self.seconds / max(seconds, 1e-9))))

    def row(self, case: Case, times: Sequence[float], reference: Sequence[float], **known: Any) -> dict[str, Any]:
        """Make the line of a case and keep it in ``rows``, from the times in each round of the case and its reference, and the cells ``known``."""
        spread = Spread.of(times)
        row = self._named(case) | {
            "rounds": spread.n, "median_s": spread.median, "p20_s": spread.low, "p80_s": spread.high,
            "flops": case.flops, **known,
        }
        if reference:
            ratio = Spread.of(ratios(times, reference))
            row |= {"ratio": ratio.median, "ratio_p20": ratio.low, "ratio_p80": ratio.high}
        return self._keep(row)

    def left_out(self, case: Case, why: str) -> dict[str, Any]:
        """Make and keep the line of a case that is not timed."""
        return self._keep(self._named(case) | {"rounds": 0, "flops": case.flops, "note": why})

    def _keep(self, row: dict[str, Any]) -> dict[str, Any]:
        assert row.keys() <= COLUMNS.keys(), row.keys() - COLUMNS.keys()
        self.rows.append(row)
        if self.path is not None:
            write_text(self.path, as_csv(self.rows))
        return row

    def _named(self, case: Case) -> dict[str, Any]:
        threads = {} if self.device == "cuda" else {"threads": case.threads or torch.get_num_threads()}
        return {name: getattr(case, name) for name in NAMES} | environment(self.device) | threads

    def spread_of_periodic(self, work: Work, call: float) -> float:
        """Seconds of periodic work for each call: the median of the work (less ``call`` if a call is timed with it) divided by its period.

        Work with a period of at most FEW calls is timed ``most_rounds`` times, rarer work three times; less often if it is LONG.
        """
        periodic = work.periodic
        if periodic is None:
            return 0.0
        most, taken = self.most_rounds if periodic.every <= FEW else 3, []
        while len(taken) < most and sum(taken) < LONG:
            if periodic.prepare is not None:
                periodic.prepare()
            taken.append(self.timer(periodic.call if periodic.then is None else periodic.with_what_follows))
        return (Spread.of(taken).median - (0 if periodic.then is None else call)) / periodic.every

    def checked_error(self, case: Case, work: Work) -> float | None:
        """The relative error of a kernel, computed once; None for a case that is no kernel.

        Raises:
            WrongResult: the error is above the tolerance of the dtype, or NaN.
        """
        if work.error is None:
            return None
        if case.id not in self._errors:
            self._errors[case.id] = work.error()
        found = self._errors[case.id]
        if not found <= TOLERANCE[case.dtype]:
            raise WrongResult(
                f"{case.id} on {self.device}: the relative error to fp64 is {found:.2g}, above "
                f"{TOLERANCE[case.dtype]:.0e}"
            )
        return found

    def measure(self, case: Case, rounds_of: Callable[[Work, Callable[[], float], int], list[float]]) -> dict[str, Any]:
        """Set up a case and its reference, warm them up, time them in turn, and make the line.

        ``rounds_of(work, before, rounds)`` times ``work.call`` in each of ``rounds`` rounds, after a call of ``before``, and
        returns the times: pytest-benchmark's loop, or :meth:`in_rounds`."""
        with _threads(case.threads if self.device == "cpu" else None):
            against = case.against
            other = self.set_up(against, keep=against) if against else None
            work = self.set_up(case, keep=against)
            known: dict[str, Any] = {"relative_error": self.checked_error(case, work)}
            if against:
                known["predicted_ratio"] = case.flops / against.flops
            if self.device == "cuda":  # all that the case keeps, caches included
                known["held_bytes"] = torch.cuda.memory_allocated() - self._before[case.id]
            else:
                known["held_bytes"] = held_bytes(work.tensors())
            begin = time.perf_counter()
            known["peak_bytes"] = known["held_bytes"] + self.peak(work.call, self.device)
            once = 2 * (time.perf_counter() - begin)
            if once < self.seconds:  # a longer call is warmed up, and timed well enough, under the profiler
                once = self.timer(work.call) + (self.timer(other.call) if other else 0)
            reference: list[float] = []

            def before() -> None:
                if other is not None:
                    reference.append(self.timer(other.call))

            times = rounds_of(work, before, self.rounds(case, once))
            share = self.spread_of_periodic(work, Spread.of(times).median)
            return self.row(case, [t + share for t in times], reference, **known)

    def in_rounds(self, work: Work, before: Callable[[], object], rounds: int) -> list[float]:
        """Time a call in each of ``rounds`` rounds, after a call of ``before``."""
        times = []
        for _ in range(rounds):
            before()
            times.append(self.timer(work.call))
        return times
