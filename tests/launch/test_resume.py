"""A run that was stopped and continued ends with the same bits as one that was not."""

import os
import shutil
import signal

import pytest

from poet.methods import METHODS
from poet.methods.contract import Method, scale_parameters
from poet.launch import loop
from poet.training import run as run_module
from poet.training.errors import RunError
from poet.launch.interrupts import StopRequest
from poet.launch.records import read_history

POET = {"merge_every": 5, "poet_lr": 1e-2}
RUNS = {
    "adamw": ("adamw", {}),
    "muon": ("muon", {}),
    "galore": ("galore", {"rank": 4, "refresh_every": 3}),
    "lora-r64": ("lora", {"rank": 4, "alpha": 2, "dropout": 0.3}),
    "oft": ("oft", {"block_size": 4}),
    "poet-bs": ("poet", {**POET, "variant": "bs", "block_size": 4}),
    "poet-fs": ("poet", {**POET, "variant": "fs", "budget": 0.5}),
}
# A method that is added is covered with its defaults.
RUNS |= {
    name: (name, scale_parameters(method, {}, 16))
    for name, method in METHODS.items()
    if name not in {covered for covered, _ in RUNS.values()}
}


@pytest.fixture(scope="module")
def whole(make_spec, data, tmp_path_factory):
    """``whole(key)``: (spec, digest, history) of the uninterrupted run."""
    known = {}

    def _whole(key):
        if key not in known:
            method, parameters = RUNS[key]
            spec = make_spec(method=method, parameters=parameters, variant=key, steps=14, accumulation=2)
            root = tmp_path_factory.mktemp(key)
            record = loop.train(spec, data=data, folder=root / "run", checkpoints=root / "checkpoints")
            known[key] = spec, record["weights_sha256"], rows_of(root / "run")
        return known[key]

    return _whole


def rows_of(folder):
    """The history without what a clock measures."""
    history = read_history((folder / "history.csv").read_text())
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in history]


@pytest.fixture
def steps(monkeypatch):
    """The steps that the test trains."""
    found, original = [], loop.Run.train_step
    monkeypatch.setattr(loop.Run, "train_step", lambda run: found.append(run.step) or original(run))
    return found


@pytest.fixture
def stopped(train_run, monkeypatch):
    """``stopped(spec, step)`` trains until a signal in that step ends it, and gives the exit code."""

    def _stopped(spec, step, number=signal.SIGTERM, **options):
        original = loop.Run.train_step

        def patched(run):
            if run.step == step:
                os.kill(os.getpid(), number)
            return original(run)

        with monkeypatch.context() as patch, pytest.raises(SystemExit) as caught:
            patch.setattr(loop.Run, "train_step", patched)
            train_run(spec, **options)
        return caught.value.code

    return _stopped


def stops(key):
    """Merges come after steps 4 and 9: before, between, at and after them, and one stop where a method has none or another run is of it."""
    return (7,) if key == "poet-fs" or METHODS[RUNS[key][0]].after_step is Method.after_step else (2, 4, 7, 11)


@pytest.mark.parametrize(("key", "stop"), [(key, stop) for key in RUNS for stop in stops(key)])
def test_a_stopped_run_ends_with_the_same_bits(whole, steps, stopped, train_run, key, stop):
    spec, digest, history = whole(key)
    steps.clear()
    assert stopped(spec, stop) == 128 + signal.SIGTERM
    record, folder = train_run(spec)
    assert steps == list(range(14))  # each once: it really went on
    assert record["weights_sha256"] == digest
    assert rows_of(folder) == history
    assert record["tokens"] == history[-1]["tokens"]


def test_sparse_history_windows_survive_a_stop(make_spec, stopped, train_run, monkeypatch):
    monkeypatch.setattr(run_module, "HISTORY_ROWS", 2)
    spec = make_spec(evaluate_every=100)
    _, folder = train_run(spec, "whole")
    stopped(spec, 3)
    _, again = train_run(spec)
    assert len(rows_of(folder)) == 2 and rows_of(again) == rows_of(folder)


def test_stopping_in_the_last_step_leaves_only_the_record_to_write(whole, stopped, train_run):
    spec, digest, history = whole("adamw")
    stopped(spec, 13, signal.SIGINT)
    record, folder = train_run(spec)
    assert record["weights_sha256"] == digest and rows_of(folder) == history


@pytest.mark.parametrize(
    ("changed", "said"),
    (
        ("code", "were made by other training code, or from other weights or examples: not used, and kept; this run starts over"),
        ("spec", "another spec of this run"),
    ),
)
def test_changed_code_or_another_spec_starts_anew_and_says_so(whole, make_spec, steps, stopped, train_run, monkeypatch, capsys, changed, said):
    """Or its record would call all of its steps today's code's, or its own spec's."""
    spec, digest, history = whole("adamw")
    steps.clear()
    with monkeypatch.context() as patch:
        if changed == "code":
            patch.setattr(loop, "training_digest", lambda method, device: "0" * 64)
        stopped(spec if changed == "code" else make_spec(seed=5), 6)
    record, folder = train_run(spec)
    assert steps == [*range(7), *range(14)]
    assert capsys.readouterr().err.count(said) == 1
    assert record["training_digest"] != "0" * 64 and record["weights_sha256"] == digest and rows_of(folder) == history
    assert folder.with_name("run-checkpoints").exists() is (changed == "spec")  # the other spec's may be wanted again


def test_a_checkpoint_of_other_rows_is_refused_with_both_digests(whole, data, tmp_path, stopped):
    spec, _, _ = whole("adamw")
    stopped(spec, 6)
    other = tmp_path / "other"
    shutil.copytree(data, other)
    (other / "meta.json").write_text((data / "meta.json").read_text().replace('"sha256": "train"', '"sha256": "tram"'))
    with pytest.raises(RunError, match=r"up to step 7 on other rows than its data holds now \(sha256 train, now tram\)"):
        loop.train(spec, data=other, folder=tmp_path / "run", checkpoints=tmp_path / "run-checkpoints")


def test_ctrl_c_after_a_signal_ends_at_once_and_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as caught, StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # from a cluster and from torchrun, say: no reason to lose the step
        assert stop.signal == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGINT)
    assert caught.value.code == 128 + signal.SIGINT
    assert signal.getsignal(signal.SIGTERM) is before
