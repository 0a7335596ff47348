"""Checkpoints: atomic, checked, the previous one kept until the next is whole."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from poet.training.errors import RunError


class CheckpointFolder:
    """The checkpoints of one run, outside of what the pipeline deletes when a job fails.

    A file is a line with the sha256 of the rest, then what ``torch.save`` wrote. ``last`` is the newest, ``previous``
    the one before: a file that was cut short or damaged is removed, with a word about it. Each spec has a folder of
    its own in the run's: a checkpoint of another spec is neither loaded nor lost.

    Args:
        folder: of the run.
        digest: of the run's spec.
        say: told, in one sentence, whenever something is passed over.
    """

    def __init__(self, folder: Path, digest: str, say=print) -> None:
        self.run_folder, self.say = Path(folder), say
        self.folder = self.run_folder / digest[:12]

    def save(self, state: dict[str, Any]) -> None:
        """Write ``state`` beside the old one, then rename.

        Raises:
            RunError: the disk is full or the folder cannot be written; earlier checkpoints are untouched.
        """
        buffer = io.BytesIO()
        torch.save(state, buffer)
        payload = buffer.getbuffer()
        temporary = self.folder / "writing"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(hashlib.sha256(payload).hexdigest().encode() + b"\n")
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            if (self.folder / "last").exists():
                os.replace(self.folder / "last", self.folder / "previous")
            os.replace(temporary, self.folder / "last")
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise RunError(
                f"cannot write a checkpoint to {self.folder} ({error.strerror}): free some space or choose another "
                "results folder, then start again; the last good checkpoint is kept"
            ) from None

    def load(self) -> dict[str, Any] | None:
        """The newest whole checkpoint of this spec, or None."""
        for name in ("last", "previous"):
            path = self.folder / name
            if not path.exists():
                continue
            digest, _, payload = path.read_bytes().partition(b"\n")
            if hashlib.sha256(payload).hexdigest().encode() != digest:
                self.say(f"checkpoint {path} is damaged or cut short: trying the one before it")
                path.unlink()  # or the next save would move it over the good one
                continue
            return torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
        for other in self._of_other_specs():
            self.say(f"the checkpoints in {other} belong to another spec of this run: not used, and kept")
        return None

    def _of_other_specs(self) -> list[Path]:
        found = self.run_folder.iterdir() if self.run_folder.exists() else ()
        return sorted(path for path in found if path.is_dir() and path != self.folder and any(path.iterdir()))

    @contextlib.contextmanager
    def claim(self) -> Iterator[None]:
        """Hold the run for this process: a worker that outlived its pipeline may still be training it.

        Raises:
            RunError: another process holds it, or the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.run_folder / "lock", "w")
        except OSError as error:
            raise RunError(f"cannot write to {self.folder} ({error.strerror}): check the folder, then start again") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"another process is still training the run of {self.run_folder}: wait for it or end it, then start again"
                ) from None
            yield

    def remove(self) -> None:
        """Delete this spec's: the run is done."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self._of_other_specs():
            shutil.rmtree(self.run_folder, ignore_errors=True)
