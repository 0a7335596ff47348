"""Every kernel, in every form that it is launched in, compiles for the machines that it is meant for."""

import ast
import json
import os
import subprocess
import sys

import pytest

from tests.kernels.ahead_of_time import SHARED_MEMORY, TARGETS, Outcome


@pytest.fixture(scope="module")
def outcomes(repository, tmp_path_factory) -> list[Outcome]:
    """In a process of its own, since this one interprets kernels, and with an empty cache, so that all are compiled."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    command = [sys.executable, "-m", "tests.kernels.ahead_of_time", "--processes", "2"]
    result = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-4000:]
    # The compiler, too, writes to stdout when it fails.
    return [Outcome(**json.loads(line)) for line in result.stdout.splitlines() if line.startswith("{")]


def shown(outcomes) -> str:
    return "\n".join(str(outcome) for outcome in outcomes)


def test_all_compile(outcomes):
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    assert not failed, shown(failed)


def test_every_kernel_is_compiled_for_every_target(outcomes, repository):
    """A kernel is a jitted function that a launch names: ``kernel[grid](...)``; the others are parts of kernels."""
    kernels = set()
    for path in (repository / "poet/kernels").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel"):
                kernels.add(node.name)
    assert kernels
    compiled = {(outcome.kernel, outcome.target) for outcome in outcomes}
    assert compiled == {(kernel, target) for kernel in kernels for target in TARGETS}


def test_nothing_spills_on_hopper(outcomes):
    spilling = [outcome for outcome in outcomes if outcome.spills != 0]
    print(shown(spilling))  # the others are reported, not forbidden
    assert not [o for o in spilling if o.target == "sm_90"], shown(spilling)


def test_shared_memory_fits(outcomes):
    too_much = [outcome for outcome in outcomes if outcome.shared > SHARED_MEMORY[outcome.target]]
    assert not too_much, shown(too_much)
