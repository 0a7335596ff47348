"""Progress on standard error: a bar on a terminal, a line now and then in a log."""

import sys
import time


class Progress:
    """Counts units of work; use as a context manager.

    total: how many units there will be, or None where nobody knows.
    """

    SECONDS_BETWEEN_LINES = 15.0

    def __init__(self, description: str, total: int | None, unit: str):
        self.description, self.total, self.unit = description, total, unit
        self.count = 0
        self._bar = None

    def __enter__(self) -> "Progress":
        self._start = self._last_line = time.monotonic()
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=self.total, desc=self.description, unit=self.unit, unit_scale=True)
        return self

    def add(self, count: int) -> None:
        self.count += count
        if self._bar is not None:
            self._bar.update(count)
        elif time.monotonic() - self._last_line > self.SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._line("")

    def __exit__(self, kind, error, traceback) -> None:
        if self._bar is not None:
            self._bar.close()
        elif kind is None:
            self._line(f", {time.monotonic() - self._start:.1f} s")

    def _line(self, end: str) -> None:
        of = f" of {self.total:,}" if self.total else ""
        print(f"{self.description}: {self.count:,}{of} {self.unit}{end}", file=sys.stderr, flush=True)
