"""Two runs never share a GPU, and a machine that has too few says so."""

import os
import subprocess

import pytest

from poet.launch import devices
from poet.launch.devices import reserved_gpus
from poet.training.errors import RunError
from tests.launch.forks import fork, wait


@pytest.fixture(autouse=True)
def three(monkeypatch, tmp_path):
    """A machine with three GPUs, one of them hidden, and its locks."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-7")
    monkeypatch.setattr(devices, "LOCKS", tmp_path)
    monkeypatch.setattr(devices, "SECONDS_BETWEEN_LOOKS", 0.01)


def seen():
    return os.environ["CUDA_VISIBLE_DEVICES"]


def test_runs_get_devices_of_their_own_and_give_them_back():
    with reserved_gpus(1, "a"):
        assert seen() == "0"
        os.environ["CUDA_VISIBLE_DEVICES"] = " 0, GPU-7"  # as another process of the same machine sees it
        with reserved_gpus(1, "b"):
            assert seen() == "GPU-7"
        assert seen() == " 0, GPU-7"
    with reserved_gpus(2, "c"):
        assert seen() == "0,GPU-7"


def test_a_run_waits_until_another_process_gives_its_devices_back(tmp_path, capfd):
    ready, log = tmp_path / "ready", tmp_path / "log"

    def first():
        with reserved_gpus(2, "first"):
            ready.write_text("")
            while "waits" not in log.read_text():
                pass

    def second():
        import sys

        sys.stderr = open(log, "w", buffering=1)
        while not ready.exists():
            pass
        with reserved_gpus(1, "second"):
            assert seen() == "0"

    log.write_text("")
    assert wait([fork(first), fork(second)], 30) == [0, 0]
    assert log.read_text() == "second: waits for 1 of 2 GPUs, which other runs hold\n"


def test_what_a_killed_run_had_started_holds_on_to_its_devices():
    with reserved_gpus(1, "a"):
        worker = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        held = devices._free(["0", "GPU-7"], 2)
        assert [name for name, _ in held] == ["GPU-7"]
        devices._release(held)
    finally:
        worker.kill()
        worker.wait()
    with reserved_gpus(2, "b"):
        assert seen() == "0,GPU-7"


def test_devices_of_different_slurm_jobs_have_the_same_names_and_are_not_the_same(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    with reserved_gpus(2, "a"):
        monkeypatch.setenv("SLURM_JOB_ID", "2")
        with reserved_gpus(2, "b"):
            assert seen() == "0,GPU-7"


def test_fewer_than_asked_is_one_sentence():
    with pytest.raises(RunError, match="run a wants 4 GPUs and this machine shows 2: give it fewer"), reserved_gpus(4, "a"):
        raise AssertionError("four GPUs out of two")


def test_none_asked_for_hides_none(monkeypatch):
    with reserved_gpus(0, "a"):
        assert seen() == "0,GPU-7"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,-1,2")
    assert devices.visible() == ["1"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(devices.torch.cuda, "device_count", lambda: 2)
    assert devices.visible() == ["0", "1"]
    with reserved_gpus(1, "a"):
        assert seen() == "0"
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
