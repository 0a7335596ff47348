"""The status file of a run in training, which ``make status`` reads."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path

from poet.system.errors import UserError
from poet.system.files import DiskError, write_text

#: Minimum time between two routine writes of the file.
SECONDS_BETWEEN_WRITES = 5.0


class Status:
    """Keeps ``status.json`` in a run's checkpoint folder; a context manager around its training.

    ``state`` is "running", "stopped" (by a signal, with its progress saved) or "failed" (with ``error``, one sentence).
    A run that is done has a record, and no status.
    """

    def __init__(self, folder: Path, name: str, digest: str, steps: int, devices: int) -> None:
        self.path = folder / "status.json"
        self.values = {
            "state": "running",
            "name": name,
            "spec_digest": digest,
            "step": 0,
            "steps": steps,
            "tokens_per_second": None,
            "updated": 0.0,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "job": os.environ.get("SLURM_JOB_ID"),
            "devices": devices,
            "error": None,
            "checkpoint_step": 0,
        }
        self._written = -SECONDS_BETWEEN_WRITES

    def update(self, *, now: bool = False, **values: object) -> None:
        """Set ``values``. The file is written at once if ``now`` is true, otherwise every few seconds."""
        self.values |= values
        if now or time.monotonic() - self._written >= SECONDS_BETWEEN_WRITES:
            self._written = time.monotonic()
            # A status that cannot be written does not end the run; a checkpoint that cannot be written does.
            with contextlib.suppress(DiskError):
                write_text(self.path, json.dumps(self.values | {"updated": time.time()}, indent=1) + "\n")

    def __enter__(self) -> Status:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None:
            return
        stopped = issubclass(kind, (SystemExit, KeyboardInterrupt))
        sentence = str(error) if isinstance(error, UserError) else f"{kind.__name__}: {str(error).partition(chr(10))[0]}"
        self.update(now=True, state="stopped" if stopped else "failed", error=None if stopped else sentence)


def tell(folder: Path, error: str) -> None:
    """Replace the error in a failed run's status, which is the first process's, by that of the process that failed first."""
    status = read_status(folder)
    if status and status["state"] == "failed":
        with contextlib.suppress(DiskError):
            write_text(folder / "status.json", json.dumps(status | {"error": error}, indent=1) + "\n")


def read_status(folder: Path) -> dict | None:
    """The status in a run's checkpoint folder; None if there is none.

    Raises:
        ValueError: the file holds no JSON object.
    """
    try:
        values = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if not isinstance(values, dict):
        raise ValueError(f"{folder / 'status.json'} holds no JSON object")
    return values
