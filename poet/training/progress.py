"""Progress: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time

from tqdm import tqdm


class Progress:
    """Reports training steps on stderr.

    Args:
        name: of the run.
        steps: how many there are.
        start: how many are done already.
        every_seconds: time between two lines in a log.
    """

    def __init__(self, name: str, steps: int, start: int, every_seconds: float = 15.0) -> None:
        self.name, self.steps, self.every = name, steps, every_seconds
        self.bar = tqdm(total=steps, initial=start, desc=name, unit="step") if sys.stderr.isatty() else None
        self._last = time.monotonic()

    def update(self, step: int, **values: float | None) -> None:
        """``step`` steps are done; ``values`` are the latest measurements (None ones are left out)."""
        shown = {k: f"{v:.4g}" for k, v in values.items() if v is not None}
        if self.bar is not None:
            self.bar.set_postfix(shown, refresh=False)
            self.bar.update(step - self.bar.n)
        elif step == self.steps or time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self.say(f"step {step}/{self.steps}" + "".join(f", {k} {v}" for k, v in shown.items()))

    def say(self, sentence: str) -> None:
        """A line of its own."""
        tqdm.write(f"{self.name}: {sentence}", file=sys.stderr)
        sys.stderr.flush()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
