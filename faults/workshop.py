"""A copy of the repository, where faults are planted and the code is tested and trained with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poet.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("analyses", "benchmarks", "config", "docs", "faults", "poet", "suite", "tests", "tools", "workflow")
#: Longest time in seconds of one fault's tests, or of one run.
LIMIT = 600.0


@dataclass(frozen=True, slots=True)
class Tested:
    """The outcome of tests."""

    passed: bool  # whether all passed
    #: the first test that failed; None also if no test was reached (an import failed, or there is no such test)
    failed: str | None
    said: str  # the end of pytest's output, or what went wrong


class Workshop:
    """A copy of the repository in a temporary folder, and the process that works in it; a context manager."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="faults-")
        self.folder = Path(self._temporary.name)
        self.root = self.folder / "repository"
        for part in PARTS:
            shutil.copytree(ROOT / part, self.root / part, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy(path, self.root)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
        environment |= {
            "PYTHONDONTWRITEBYTECODE": "1",  # Python would take old bytecode if a file with a fault has the size and second of the sound one
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # plugins take longer to load than a test
            "CUDA_VISIBLE_DEVICES": "",  # a GPU does not survive a fork
            "TRITON_INTERPRET": "1",  # read when triton is imported, which transformers does
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "faults.server"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._server = subprocess.Popen(command, cwd=self.root, env=environment, **pipes)

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.send_signal(signal.SIGINT)
        self._server.communicate()
        self._temporary.cleanup()

    def _ask(self, do: str, **job: Any) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            print(json.dumps({"do": do, "folder": folder, **job}), file=self._server.stdin, flush=True)
            line = self._server.stdout.readline()
            if not line:
                raise UserError("the process that runs the tests has died; what it said is above")
            answer = json.loads(line)
            if answer.get("late"):
                return {"said": f"stopped after {job['seconds']:g} s"}
            log = (Path(folder) / "log").read_text(errors="replace").splitlines(keepends=True)
            return {"said": answer.get("raised") or "".join(log[-20:]), **answer}

    def test(self, nodes: tuple[str, ...], seconds: float = LIMIT) -> Tested:
        """Run tests on the copy in its current state, up to the first failure."""
        answer = self._ask("test", nodes=nodes, seconds=seconds)
        code = answer.get("code")
        return Tested(code == 0, answer["failed"] if code == 1 else None, answer["said"])

    def train(self, scale: str, model: str, row: str, seed: int, data: Path, results: Path) -> None:
        """Train a run with the copy in its current state, on one thread, into ``results/runs``.

        Raises:
            UserError: the run did not end; the message is the last line of its output.
        """
        names = {"scale": scale, "model": model, "row": row, "seed": seed}
        answer = self._ask("train", **names, data=str(data.resolve()), results=str(results.resolve()), seconds=LIMIT)
        if "trained" not in answer:
            raise UserError(answer["said"].strip().rpartition("\n")[2])
