"""Checkpoints: atomic, checked, the previous one kept until the next is whole."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from pathlib import Path
from typing import Any

import torch

from poet.training.errors import RunError


class CheckpointFolder:
    """The checkpoints of one run, outside of what the pipeline deletes when a job fails.

    A file is a line with the sha256 of the rest, then what ``torch.save`` wrote. ``last`` is the newest, ``previous``
    the one before: a file that was cut short or damaged is passed over, with a word about it.

    Args:
        folder: where; made when first saved to.
        digest: of the run's spec. A checkpoint of another spec is never loaded.
        say: told, in one sentence, whenever something is passed over.
    """

    def __init__(self, folder: Path, digest: str, say=print) -> None:
        self.folder, self.digest, self.say = Path(folder), digest, say

    def save(self, state: dict[str, Any]) -> None:
        """Write ``state`` beside the old one, then rename.

        Raises:
            RunError: the disk is full or the folder cannot be written; earlier checkpoints are untouched.
        """
        buffer = io.BytesIO()
        torch.save({"digest": self.digest, **state}, buffer)
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
                continue
            state = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
            if state.pop("digest") != self.digest:
                self.say(f"checkpoint {path} belongs to another run spec: not used")
                continue
            return state
        return None

    def remove(self) -> None:
        """Delete them all: the run is done."""
        shutil.rmtree(self.folder, ignore_errors=True)
