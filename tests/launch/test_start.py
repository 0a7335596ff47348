"""``launch``: torchrun's processes, what ends them, and what a user hears."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from poet.launch import __main__ as main
from poet.launch import start as module
from poet.training.errors import RunError
from poet.launch.start import launch
from poet.launch.loop import train
from poet.launch.records import read_history

PARAMETERS = {"merge_every": 5, "poet_lr": 1e-2, "variant": "bs", "block_size": 4}
LAUNCH = """
import json, sys
from pathlib import Path
from poet.launch.start import launch
from poet.training.spec import RunSpec
given = json.loads(sys.argv[1])
spec = RunSpec.from_dict(given.pop("spec"))
launch(spec, **{key: Path(value) if isinstance(value, str) and "/" in value else value for key, value in given.items()})
"""


def start(spec, repository, log, **options):
    """``launch`` in a process of its own, as a pipeline's job is, with what it says in a file."""
    given = {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}
    command = [sys.executable, "-c", LAUNCH, json.dumps({"spec": spec.to_dict(), "device": "cpu", **given})]
    with open(log, "w") as file:
        return subprocess.Popen(command, cwd=repository, stderr=file)


def until_it_trains(process, status, log):
    deadline = time.monotonic() + 120
    while not (status.exists() and json.loads(status.read_text())["state"] == "running"):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, "the run never started"
        time.sleep(0.05)


def losses(folder):
    """Step, tokens and loss of each row, to rounding.

    Two processes add in another order than one. In 60 steps that grew to 3e-5 of the loss on an Intel Xeon, and to less than 2e-5 on an AMD EPYC. A
    step that is lost or done twice moves the loss by 5% in the median.
    """
    return [(row["step"], row["tokens"], pytest.approx(row["train_loss"], rel=1e-4)) for row in read_history((folder / "history.csv").read_text())]


@pytest.fixture
def spec(make_spec):
    return make_spec(method="poet", parameters=PARAMETERS, batch_rows=8, accumulation=4, steps=60, evaluate_every=20)


@pytest.fixture
def folders(data, tmp_path):
    return {"data": data, "folder": tmp_path / "run", "checkpoints": tmp_path / "checkpoints"}


def stopped(process):
    """As by Ctrl-C: the job alone is told."""
    process.send_signal(signal.SIGINT)


def warned(process):
    """As by Slurm before a time limit: every process but the job's own, which may run on another node."""
    for child in psutil.Process(process.pid).children(recursive=True):
        child.terminate()


def test_two_processes_are_stopped_twice_and_one_goes_on(spec, folders, tmp_path, repository):
    status, steps = folders["checkpoints"] / "status.json", [0]
    for number, end in enumerate((stopped, warned)):
        log = tmp_path / f"log{number}"
        process = start(spec, repository, log, **folders, threads=2, processes=2)
        until_it_trains(process, status, log)
        running = json.loads(status.read_text())
        assert (running["devices"], running["job"]) == (2, os.environ.get("SLURM_JOB_ID"))
        trainers = psutil.Process(process.pid).children(recursive=True)
        end(process)
        assert process.wait(120) > 128, log.read_text()
        assert not [trainer for trainer in trainers if trainer.is_running()]  # nothing is left behind to save or to fail
        assert log.read_text().count("saved, the next call goes on") == 1
        found = json.loads(status.read_text())
        steps.append(found["step"])
        assert found["state"] == "stopped" and steps[-2] < found["checkpoint_step"] == found["step"] < spec.steps
        assert not list(folders["checkpoints"].glob("job-*"))

    launch(spec, **folders, device="cpu", threads=1, processes=1)
    train(spec, data=folders["data"], folder=tmp_path / "one", checkpoints=tmp_path / "one-checkpoints", device="cpu")
    assert losses(folders["folder"]) == losses(tmp_path / "one")
    assert not folders["checkpoints"].exists()


def test_the_sentence_of_a_process_is_the_one_that_a_user_hears(spec, folders, monkeypatch):
    note = 'printf %s "$1" > "$0"; exit 1'
    monkeypatch.setattr(module, "_command", lambda job, *_: ["sh", "-c", note, str(module.end_of(job)), '{"error": "the disk is full: free some space"}'])
    with pytest.raises(RunError, match="^the disk is full: free some space$"):
        launch(spec, **folders, device="cpu", threads=1, processes=2)
    assert not list(folders["checkpoints"].glob("job-*"))


@pytest.mark.parametrize(
    ("error", "code", "end"),
    [
        (RunError("a sentence"), 2, {"error": "a sentence"}),
        (ValueError("a bug"), 1, {"error": "ValueError: a bug (the traceback is in the run's log)"}),
        (SystemExit(143), 143, {"code": 143}),
    ],
)
def test_a_process_leaves_why_it_ended_and_the_first_one_s_word_counts(spec, tmp_path, monkeypatch, error, code, end):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(main, "train", fail)
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"spec": spec.to_dict(), "data": "d", "folder": "f", "checkpoints": "c"}))
    assert main.main(str(job)) == code
    assert json.loads(module.end_of(job).read_text()) == end
    main._note(str(job), error="that one is gone")
    assert json.loads(module.end_of(job).read_text()) == end


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"processes": 3, "nodes": 2}, "2 nodes cannot share 3 processes evenly"),
        ({"processes": 2, "nodes": 2}, "wants 2 nodes, and this is no Slurm job"),
    ],
)
def test_nodes_that_cannot_be_had_are_refused(spec, folders, monkeypatch, options, words):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(RunError, match=words):
        launch(spec, **folders, device="cpu", threads=1, **options)


def test_processes_that_die_without_a_word_are_a_sentence(spec, folders, monkeypatch):
    monkeypatch.setattr(module, "_command", lambda *_: ["sh", "-c", "kill -9 $$"])
    with pytest.raises(RunError, match=r"ended without a word \(exit code -9; its log has what they printed\)"):
        launch(spec, **folders, device="cpu", threads=1, processes=2)


def test_processes_that_are_stopped_before_they_can_save_end_as_by_the_signal(spec, folders, monkeypatch):
    monkeypatch.setattr(module, "_command", lambda *_: ["sh", "-c", "sleep 1; kill -TERM $PPID; sleep 20"])
    with pytest.raises(SystemExit, match="143"):
        launch(spec, **folders, device="cpu", threads=1, processes=2)


def test_several_nodes_are_one_srun_with_a_torchrun_on_each(monkeypatch):
    command = module._command(Path("/shared/a job.json"), 4, 2, 16)
    assert command[:6] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=16", "--kill-on-bad-exit=1"]
    script = command[-1]
    for part in ("--nproc-per-node=4", "--nnodes=2", "--node-rank=$SLURM_NODEID", "--master-addr=$SLURM_LAUNCH_NODE_IPADDR", "'/shared/a job.json'"):
        assert part in script
