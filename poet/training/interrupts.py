"""Ending between two steps instead of within one."""

from __future__ import annotations

import signal
from types import FrameType


class StopRequest:
    """While entered, SIGINT and SIGTERM set :attr:`signal` and let the current step finish; a second one ends at once.

    Attributes:
        signal: number of the signal that came, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None

    def __enter__(self) -> StopRequest:
        self._previous = {s: signal.signal(s, self._handle) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise SystemExit(128 + number)
        self.signal = number
