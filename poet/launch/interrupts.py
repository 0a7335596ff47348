"""Stopping a run between two steps instead of within one."""

from __future__ import annotations

import signal
from types import FrameType

#: ``poet.launch.start`` sends SIGUSR1 to the processes of a run.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """While entered, SIGINT, SIGTERM and SIGUSR1 set :attr:`signal` and let the current step finish.

    A SIGINT after the first signal ends the process at once. A further SIGTERM or SIGUSR1 changes nothing: a cluster and
    ``torchrun`` may send a process the same signal twice.

    Attributes:
        signal: number of the signal that came, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None

    def __enter__(self) -> StopRequest:
        self._previous = {s: signal.signal(s, self._handle) for s in STOPPING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
        elif number == signal.SIGINT:
            raise SystemExit(128 + number)
