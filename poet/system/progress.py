"""Progress on standard error: a bar on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import sys
import time

#: Minimum time between two lines in a log.
SECONDS_BETWEEN_LINES = 15.0


def say(sentence: str) -> None:
    """Print a line on standard error, above any bar."""
    from tqdm import tqdm

    tqdm.write(sentence, file=sys.stderr)
    sys.stderr.flush()


class Progress:
    """Counts units of work, of a known or unknown total, from those that were done before; a context manager."""

    def __init__(self, description: str, total: int | None, unit: str, done: int = 0) -> None:
        self.description, self.total, self.unit, self.count = description, total, unit, done
        self._bar = None

    def __enter__(self) -> Progress:
        self._start = self._last_line = time.monotonic()
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=self.total, initial=self.count, desc=self.description, unit=self.unit, unit_scale=True
            )
        return self

    def add(self, count: int, **values: float | None) -> None:
        """Count ``count`` more units; ``values`` are the latest measurements (None is left out)."""
        self.count += count
        shown = {key: f"{value:.4g}" for key, value in values.items() if value is not None}
        if self._bar is not None:
            if shown:
                self._bar.set_postfix(shown, refresh=False)
            self._bar.update(count)
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._line("".join(f", {key} {value}" for key, value in shown.items()))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif kind is None:
            self._line(f", {time.monotonic() - self._start:.1f} s")

    def _line(self, end: str) -> None:
        of = f" of {self.total:,}" if self.total else ""
        print(f"{self.description}: {self.count:,}{of} {self.unit}{end}", file=sys.stderr, flush=True)
