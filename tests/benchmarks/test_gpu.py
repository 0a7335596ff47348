"""The GPU runner's logic on a CPU, with a clock and small cases in place of a GPU."""

import csv
import subprocess
import sys

import pytest
import torch

from benchmarks import gpu
from benchmarks.bench import Bench, WrongResult
from benchmarks.cases import small_cases
from benchmarks.rows import COLUMNS

#: What a machine with nothing but torch, Triton, transformers (and what that needs), numpy and pydantic lacks.
MISSING = (
    "pandas", "pyarrow", "scipy", "sklearn", "matplotlib", "seaborn", "pytest", "pytest_benchmark", "snakemake",
    "jsonschema", "peft", "datasets", "rouge_score", "tabulate", "humanfriendly", "psutil", "hypothesis",
)  # fmt: skip


def millisecond(call):
    """A clock on which every call takes as long."""
    call()
    return 1e-3


@pytest.fixture
def bench():
    return Bench(timer=millisecond, seconds=0.0)


def few():
    """Kernels in two precisions with their references, layers, and two methods' steps."""
    cases = small_cases(dtypes=("bf16", "fp32"), with_reference=True)
    return [case for case in cases if case.operation != "step" or case.variant in ("adamw", "poet-bs-b256", "lora-r64")]


def test_every_case_has_its_line(bench, tmp_path):
    cases, said = few(), []
    bench.path = tmp_path / "bench-gpu.csv"
    gpu.run(cases, bench, say=said.append)
    assert [row["variant"] for row in bench.rows] == [case.variant for case in cases]
    kernels = [row for row in bench.rows if row["operation"] not in ("layer", "step")]
    assert {row["dtype"] for row in kernels} == {"bf16", "fp32"} and len(kernels) > 20
    assert all(0 <= row["relative_error"] < 2e-2 and row["ratio"] == 1.0 for row in kernels)
    assert max(row["relative_error"] for row in kernels if row["dtype"] == "bf16") > 1e-4  # bf16 was really checked
    assert said[0].startswith("every kernel agrees with fp64") and len(said) == 1 + len(cases)
    with bench.path.open() as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == list(COLUMNS) and len(lines) == len(cases)
    assert any("step smoke-60m-ff80 64 fp32 poet-bs-b256" in line for line in said)


def test_a_wrong_kernel_ends_the_run_before_anything_is_timed(bench, monkeypatch):
    from benchmarks import kernels

    right = kernels.orthogonal.rotation_blocks
    monkeypatch.setattr(kernels.orthogonal, "rotation_blocks", lambda packed, terms: right(packed, terms) + 0.01)
    bench.timer = None  # whoever times fails
    with pytest.raises(WrongResult, match=r"rotation_blocks-\S+ on cpu: the relative error to fp64 is"):
        gpu.run(few(), bench, say=lambda line: None)
    assert bench.rows == []


def test_a_package_that_is_missing_and_time_that_is_up_leave_cases_out_with_a_word(bench, monkeypatch):
    cases = [case for case in few() if case.operation == "step"]
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: None)
    gpu.run(cases, bench, say=lambda line: None)
    assert [row["note"] for row in bench.rows if row["rounds"] == 0] == ["needs peft"]
    late = Bench()
    gpu.run(cases, late, limit=-1, say=lambda line: None)
    assert {row["note"] for row in late.rows} == {"needs peft", "no time left of -1 s"}


def test_it_needs_no_more_than_torch_triton_transformers_numpy_and_pydantic(repository):
    """Importing it, listing the cases and setting one of each kind up, with everything else made unimportable."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({MISSING!r}))
from benchmarks import gpu
from benchmarks.cases import small_cases
from benchmarks.bench import Bench
assert len(gpu.gpu_cases()) > 300
bench = Bench(seconds=0.0)
cases = [c for c in small_cases() if c.operation not in ("step",) or c.variant in ("adamw", "poet-bs-b256", "muon")]
gpu.run(cases, bench, say=lambda line: None)
print(len(bench.rows) == len(cases))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "True"


def test_without_a_gpu_it_says_so_in_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main([]) == 2
    assert capsys.readouterr().err == "error: there is no GPU that torch can use: make bench measures the CPU\n"
