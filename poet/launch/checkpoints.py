"""Checkpoints: written atomically and checked by sha256; the previous one is kept until the next is complete."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from poet.data.files import sha256_of
from poet.system.files import try_lock
from poet.training.errors import RunError


class CheckpointFolder:
    """The checkpoints of one run, in a folder that the pipeline does not delete when a job fails.

    A file's name has its step and the start of its sha256, so that a damaged file is recognized; it is removed, and the log
    says so. The newest two checkpoints are kept. Each pair of spec and code has its own subfolder: a checkpoint of another
    spec or of other code is neither loaded nor deleted.

    Args:
        folder: the run's checkpoint folder.
        digest: of the run's spec.
        code: digest of the files, and of the weights, that its numbers depend on; if it changes, the run starts over.
        say: called with a sentence for each checkpoint that is not used.
    """

    def __init__(self, folder: Path, digest: str, code: str, say=print) -> None:
        self.run_folder, self.spec, self.say = Path(folder), digest[:12], say
        self.folder = self.run_folder / f"{self.spec}-{code[:12]}"

    def save(self, state: dict[str, Any]) -> None:
        """Write ``state``, which has the key ``step``, to a temporary file, then rename it.

        Raises:
            RunError: the disk is full or the folder cannot be written; earlier checkpoints are untouched.
        """
        temporary = self.folder / "writing"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            path = self.folder / f"{state['step']:09d}-{_digest(temporary)}.pt"
            before = [other for other in self._files() if other != path]
            os.replace(temporary, path)
            for other in before[1:]:
                other.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:  # torch's writer raises RuntimeError if a write fails
            with contextlib.suppress(OSError):  # nothing can be removed from a folder that is not writable
                temporary.unlink(missing_ok=True)
            reason = error if isinstance(error, OSError) else error.__context__
            if not isinstance(reason, OSError):
                raise
            raise RunError(
                f"cannot write a checkpoint to {self.folder} ({reason.strerror}): free some space or choose another "
                "results folder, then start again; the last good checkpoint is kept"
            ) from None

    def newest(self) -> Path | None:
        """The newest intact checkpoint of this spec and code, or None; newer damaged ones are removed."""
        for path in self._files():
            try:
                digest = _digest(path)
            except OSError as error:
                self.say(f"checkpoint {path} cannot be read ({error.strerror}): trying the one before it")
                continue
            if path.stem.rpartition("-")[2] == digest:
                return path
            self.say(f"checkpoint {path} is damaged or cut short: trying the one before it")
            path.unlink()  # else the next save would keep it instead of the good one
        for other in self._others():
            what = "were made by other training code, or from other weights or examples" if self._of_this_spec(other) else "belong to another spec of this run"
            self.say(f"the checkpoints in {other} {what}: not used, and kept; this run starts over")
        return None

    def load(self, path: Path | None = None) -> dict[str, Any] | None:
        """The state of a checkpoint, by default the newest intact one; None if there is none. Tensors are mapped, and read on use."""
        path = path or self.newest()
        return None if path is None else torch.load(path, map_location="cpu", weights_only=True, mmap=True)

    def _files(self) -> list[Path]:
        """Newest first; the order of two files of one step does not matter."""
        return sorted(self.folder.glob("*-*.pt"), reverse=True)

    def _of_this_spec(self, folder: Path) -> bool:
        return folder.name.partition("-")[0] == self.spec

    def _others(self) -> list[Path]:
        found = self.run_folder.iterdir() if self.run_folder.exists() else ()
        return sorted(path for path in found if path.is_dir() and path != self.folder and any(path.iterdir()))

    @contextlib.contextmanager
    def claim(self) -> Iterator[None]:
        """Lock the run for this process: a worker that outlived its pipeline may still be training it.

        Raises:
            RunError: another process has the lock, or the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.run_folder / "lock", "w")
        except OSError as error:
            raise RunError(f"cannot write to {self.folder} ({error.strerror}): check the folder, then start again") from None
        with lock:
            locked = try_lock(lock)
            if locked is False:
                raise RunError(f"another process is still training the run of {self.run_folder}: wait for it or end it, then start again")
            if locked is None:
                self.say(f"the file system of {self.run_folder} has no locks: nothing keeps a second process from this run")
            yield

    def remove(self) -> None:
        """Delete all checkpoints of this spec, of any code, once the run is done."""
        for folder in (self.folder, *filter(self._of_this_spec, self._others())):
            shutil.rmtree(folder, ignore_errors=True)
        (self.run_folder / "status.json").unlink(missing_ok=True)
        if not self._others():
            shutil.rmtree(self.run_folder, ignore_errors=True)


def _digest(path: Path) -> str:
    """The start of a file's sha256, which is part of the file's name."""
    return sha256_of(path)[:16]
