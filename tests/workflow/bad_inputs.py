"""Bad inputs: ``python tests/workflow/bad_inputs.py`` tries each and exits with 1 unless the last line of each names thing and remedy.

With numbers (``3 17``) it tries those alone. Nothing is trained: where Snakemake is called it is with ``-n``, or refuses before it begins.
"""

import argparse
import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from refusals import CALLS, EDITS, FILES, SMOKE

MODULES = {
    **dict.fromkeys(("why", "nearest", "compare", "plan", "status", "verify"), "suite"),
    **{name: f"suite.{name}" for name in ("recorded", "tuning")},
    "tasks": "poet.finetuning.tasks",
    "record": "tools.record",
}


def command_of(project, call: str) -> list[str]:
    """The command line that a call stands for."""
    what, *arguments = call.split()
    if what == "snakemake":
        config = [] if "--config" in arguments else ["--config", "scale=smoke"]
        return [*project.command("-n"), *arguments, *config]
    own = [what] if MODULES[what] == "suite" else []
    return [sys.executable, "-m", MODULES[what], *own, *arguments]


def last_line(project, command: list[str]) -> tuple[int, str, bool]:
    """Exit code, last line, and whether there was a traceback."""
    environment = {**os.environ, "PYTHONPATH": str(project.folder)}
    done = subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, text=True, timeout=600)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return done.returncode, lines[-1] if lines else "", "Traceback" in done.stderr + done.stdout


def wrong(found: tuple[int, str, bool], words: tuple[str, ...]) -> str:
    """What a refusal lacks; empty if nothing."""
    code, line, traceback = found
    if traceback:
        return f"a traceback: {line}"
    if code == 0 or not re.match(r"(python -m \S+( \w+)?: )?error: ", line):  # argparse names the program first
        return f"no refusal (exit code {code}): {line}"
    missing = [word for word in words if word not in line]
    return f"{missing} missing in: {line}" if missing else ""


def cases(project) -> list[Callable[[], tuple[str, str]]]:
    """Each tries an input, and gives its name with what is wrong with the answer."""

    def called(call: str, words: tuple[str, ...]) -> tuple[str, str]:
        return call, wrong(last_line(project, command_of(project, call)), words)

    def edited(old: str, new: str, words: tuple[str, ...], name: str = SMOKE) -> tuple[str, str]:
        text = (project.folder / name).read_text()
        assert old in text, f"{name} has no {old!r}"
        with standing(project.folder / name, text.replace(old, new, 1)):
            found = [called(call, words)[1] for call in ("plan --scale smoke", "snakemake all")]
        return f"{old} -> {new!r}", "; ".join(filter(None, found))

    def read(name: str, text: str, call: str, words: tuple[str, ...]) -> tuple[str, str]:
        with standing(project.folder / name, text):
            return f"{call}, where {name} has {text!r}", called(call, words)[1]

    groups = ((called, CALLS), (edited, EDITS), (read, FILES))
    return [functools.partial(tried, *case) for tried, group in groups for case in group]


@contextlib.contextmanager
def standing(path: Path, text: str) -> Iterator[None]:
    """A file with a text, and what was in its place afterwards."""
    before = path.read_bytes() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    try:
        yield
    finally:
        path.unlink() if before is None else path.write_bytes(before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", type=int, nargs="*", help="of bad inputs; default: all")
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from conftest import ROOT, Project

    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project")
        for part in ("tools", "benchmarks", "faults", "tests"):  # `make record` is of the repository
            shutil.copytree(ROOT / part, project.folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        tries = cases(project)
        numbers = given.numbers or range(len(tries))
        bad = 0
        for number in numbers:
            name, fault = tries[number]()
            bad += bool(fault)
            print(f"{number} {'BAD ' + fault if fault else 'ok'}: {name}", flush=True)
    print(f"{len(numbers)} bad inputs, {bad} without a last line that names thing and remedy")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
