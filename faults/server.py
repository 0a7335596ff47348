"""Tests and trains in forks of one process that has loaded what takes seconds to load.

Started in a copy of the repository by :mod:`faults.workshop`. The process itself loads no module of the method, so
that each fork reads the files as they are at that moment. A job is a line of JSON on stdin, its answer one on stdout:

- ``{"do": "test", "nodes": [...]}`` -> ``{"code": pytest's exit code, "failed": first node id that failed, or null}``
- ``{"do": "train", "scale": ..., "model": ..., "row": ..., "seed": ..., "data": folder, "results": folder}`` ->
  ``{"trained": the run's name}``; its files are in ``results/runs/<name>``

Both have ``seconds``, after which the fork is killed and the answer is ``{"late": true}``, and ``folder``, which is theirs:
what they print goes to ``log`` in it. A fork that raises answers ``{"raised": the traceback}``.
"""

import contextlib
import gc
import json
import os
import select
import signal
import sys
import traceback
from pathlib import Path


class _FirstFailure:
    """A plugin of pytest's."""

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


def _in_the_fork(job: dict, writer: int) -> None:
    os.setpgid(0, 0)  # with what it starts itself it can be killed as one
    log = os.open(Path(job["folder"]) / "log", os.O_WRONLY | os.O_CREAT)
    for stream, target in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(target, stream)
    try:
        answer = {"test": test, "train": train}[job["do"]](job)
        method = sys.modules.get("poet")  # none where pytest found nothing to import
        if method is not None and not Path(method.__file__).is_relative_to(Path.cwd()):
            raise RuntimeError(f"the copy was to be tested, not {method.__file__}")
    except BaseException:  # whatever it is, the process that waits for an answer has to hear of it
        answer = {"raised": traceback.format_exc()}
    sys.stdout.flush()
    with open(writer, "w") as pipe:
        json.dump(answer, pipe)


def answer(job: dict) -> dict:
    """Do a job in a fork, and kill it if it takes longer than it may."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _in_the_fork(job, writer)
        os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], job["seconds"])
        with open(reader) as pipe:
            text = pipe.read() if ready else '{"late": true}'
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return json.loads(text) if text else {"raised": "the process died"}


def main() -> None:
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import torch  # noqa: F401
    from transformers import LlamaForCausalLM  # noqa: F401

    gc.freeze()  # what is there now is no business of the forks' garbage collectors
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell's background ignores the first
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # how it is stopped
        main()
