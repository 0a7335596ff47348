"""The GPUs of this machine: a run reserves as many as it needs, and two runs never share one."""

import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import torch

from poet.system.files import try_lock
from poet.system.progress import say
from poet.training.errors import RunError

#: Folder for lock files: local to this machine, the same for every shell, and not cleaned up while runs train.
LOCKS = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
#: Seconds between two searches for free GPUs.
SECONDS_BETWEEN_LOOKS = 5.0


def visible() -> list[str]:
    """The GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES, else by number. CUDA is not initialized.

    A GPU that one shell names by number and another by UUID counts as two.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        names = (part.strip() for part in named.split(","))
        return list(itertools.takewhile(lambda name: name not in ("", "-1"), names))  # what follows one of these is not counted
    return [str(number) for number in range(torch.cuda.device_count())]


@contextlib.contextmanager
def reserved_gpus(count: int, name: str) -> Iterator[None]:
    """Reserve ``count`` GPUs, and make them the only ones that this process and its child processes see; 0 takes none and hides none.

    Waits while other runs of this user, whichever pipeline started them, hold too many. In a Slurm job the locks have the
    job's number in their names: GPUs of the same name in two jobs count as different ones.

    Raises:
        RunError: fewer GPUs are visible.
    """
    if not count:
        yield
        return
    names = visible()
    if len(names) < count:
        raise RunError(
            f"run {name} wants {count} GPUs and this machine shows {len(names)}: give it fewer (--resources gpu=N, or resources "
            "in the scale's file: each takes more micro-batches then), or use another machine"
        )
    waited = False
    while len(locks := _free(names, count)) < count:
        _release(locks)
        if not waited:
            say(f"{name}: waits for {count} of {len(names)} GPUs, which other runs hold")
            waited = True
        time.sleep(SECONDS_BETWEEN_LOOKS)
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu for gpu, _ in locks)
    try:
        yield
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before
        _release(locks)


def _free(names: list[str], count: int) -> list[tuple[str, IO]]:
    """Lock up to ``count`` free GPUs; returns their names and locks."""
    folder = LOCKS / f"poet-gpus-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    locks: list[tuple[str, IO]] = []
    for name in names:
        if len(locks) == count:
            break
        lock = open(folder / f"{os.environ.get('SLURM_JOB_ID', 'machine')}-{name.replace('/', '_')}", "w")
        locked = try_lock(lock)
        if locked is None:
            say(f"{folder} has no locks: nothing keeps a second run from GPU {name}")
        if locked is False:
            lock.close()
        else:
            os.set_inheritable(lock.fileno(), True)  # see poet.launch.start
            locks.append((name, lock))
    return locks


def _release(locks: list[tuple[str, IO]]) -> None:
    for _, lock in locks:
        lock.close()
