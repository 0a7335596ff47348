"""README.md: its code runs, its generated parts are what is recorded, its pins agree."""

import re
import subprocess
import sys
import tomllib
from types import ModuleType

import pytest
import yaml
from poet.methods import Method
from poet.optim import poet_parameters


@pytest.fixture
def blocks(repository):
    return re.findall(r"```python\n(.*?)```", (repository / "README.md").read_text(), re.S)


def test_the_training_example_trains_and_exports(blocks, llama, tokens):
    code = next(b for b in blocks if "apply_poet" in b).replace("block_size=256, merge_every=400", "block_size=8, merge_every=3")
    batches = [{"input_ids": tokens, "labels": tokens}] * 7
    names = {"model": llama(), "batches": batches}
    exec(code, names)
    model = names["model"]
    assert not poet_parameters(model)
    assert model(input_ids=tokens, labels=tokens).loss < 4.16  # ln 64: what knowing nothing costs


def test_the_method_example_is_a_method(blocks, llama, tokens, monkeypatch):
    module = ModuleType("sgd_example")
    monkeypatch.setitem(sys.modules, "sgd_example", module)  # dataclasses look their module up
    exec(next(b for b in blocks if "METHOD" in b), module.__dict__)
    method = module.METHOD
    assert issubclass(method, Method)
    model = llama()
    (optimizer,) = method(method.Parameters(lr=0.1)).optimizers(model)
    first = model(input_ids=tokens, labels=tokens).loss
    for _ in range(10):
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert model(input_ids=tokens, labels=tokens).loss < first


def test_generated_parts_are_up_to_date(repository):
    done = subprocess.run([sys.executable, "tools/record.py", "--check"], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_lock_and_the_conda_environment_have_the_same_pins(repository):
    lock = [s for s in (repository / "requirements.lock").read_text().splitlines() if s and not s.startswith("#")]
    environment = yaml.safe_load((repository / "environment.yml").read_text())
    assert environment["dependencies"][-1]["pip"] == lock
    assert all(re.fullmatch(r"[A-Za-z0-9_.\-]+==[^=+;]+(; platform_system == 'Linux')?", pin) for pin in lock)
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    pinned = {pin.partition("==")[0].lower().replace("_", "-"): pin.partition(";")[0].partition("==")[2] for pin in lock}
    for wanted in project["optional-dependencies"]["suite"]:
        name, version = wanted.partition(";")[0].strip().split("==")
        assert pinned[name.lower()] == version


def test_results_of_another_scale_are_never_recorded(repository, tmp_path):
    (tmp_path / "table2.csv").write_text("model,scale\n60m,smoke\n")
    done = subprocess.run(
        [sys.executable, "tools/record.py", "--scale", "mini", "--results", tmp_path],
        cwd=repository,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "is of scale smoke, not mini" in done.stderr


def test_a_partial_benchmark_is_never_recorded(repository, tmp_path):
    (tmp_path / "bench.csv").write_text("operation,shape,tokens,dtype,variant,rounds\nlayer,1x1,1,fp32,linear,5\n")
    command = [sys.executable, "tools/record.py", "--scale", "mini", "--results", tmp_path]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    assert done.returncode == 1
    assert "of the recorded cases: run the whole of make bench" in done.stderr
