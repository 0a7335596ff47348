"""Tests and trains in forks of one process that has already imported the packages that take seconds to import.

Started in a copy of the repository by :mod:`faults.workshop`. The process itself imports nothing from ``poet`` or ``suite``, so that
each fork reads the files as they are at that moment. A job is a line of JSON on stdin, its answer a line on stdout:

- ``{"do": "test", "nodes": [...]}`` -> ``{"code": pytest's exit code, "failed": first node id that failed, or null}``
- ``{"do": "train", "scale": ..., "model": ..., "row": ..., "seed": ..., "data": folder, "results": folder}`` ->
  ``{"trained": the run's name}``; its files are in ``results/runs/<name>``

A job also has ``seconds``, after which the fork is killed and the answer is ``{"late": true}``, and ``folder``, a folder of its own
whose file ``log`` gets its output. A fork that raises answers ``{"raised": the traceback}``.
"""

import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

#: What takes seconds to import.
PRELOADED = (
    *("hypothesis", "matplotlib.ticker", "numpy", "pandas", "peft", "pyarrow", "pydantic", "pytest", "torch"),
    "transformers.models.llama.modeling_llama",
)


class _FirstFailure:
    """A pytest plugin that keeps the first test that fails."""

    node: str | None = None

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed and self.node is None:
            self.node = report.nodeid


def test(job: dict) -> dict:
    import pytest

    first = _FirstFailure()
    options = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", f"--basetemp={job['folder']}/tmp"]
    code = pytest.main([*options, *job["nodes"]], plugins=[first])
    return {"code": int(code), "failed": first.node}


def train(job: dict) -> dict:
    from poet.launch.loop import train as train_run
    from suite.scale import load_scale

    spec = load_scale({"scale": job["scale"], "seeds": [job["seed"]]}).run(job["model"], job["row"], job["seed"])
    places = {"data": Path(job["data"]), "folder": Path(job["results"]) / "runs" / spec.name}
    train_run(spec, **places, checkpoints=Path(job["folder"]) / "checkpoints", device="cpu", threads=1)
    return {"trained": spec.name}


def _in_the_fork(job: dict, writer: Connection) -> None:
    os.setpgid(0, 0)  # a process group: the fork is killed with its children
    log = os.open(Path(job["folder"]) / "log", os.O_WRONLY | os.O_CREAT)
    for stream, target in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(target, stream)
    try:
        answer = {"test": test, "train": train}[job["do"]](job)
        method = sys.modules.get("poet")  # None if pytest found nothing to import
        if method is not None and not Path(method.__file__).is_relative_to(Path.cwd()):
            raise RuntimeError(f"the copy was to be tested, not {method.__file__}")
    except BaseException:  # any error at all: the process that waits needs an answer
        answer = {"raised": traceback.format_exc()}
    sys.stdout.flush()
    writer.send(answer)


def answer(job: dict) -> dict:
    """Do a job in a fork, and kill the fork if it takes too long."""
    fork = multiprocessing.get_context("fork")
    reader, writer = fork.Pipe(duplex=False)
    child = fork.Process(target=_in_the_fork, args=(job, writer))
    child.start()
    with contextlib.suppress(OSError):  # here, too: it may not have begun when its time is over
        os.setpgid(child.pid, child.pid)
    writer.close()
    try:
        return reader.recv() if reader.poll(job["seconds"]) else {"late": True}
    except EOFError:
        return {"raised": "the process died"}
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
            os.killpg(child.pid, signal.SIGKILL)
        child.join()
        reader.close()


def main() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # garbage collection in the forks need not search the objects made so far
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # the workshop stops the server by SIGINT
        main()
