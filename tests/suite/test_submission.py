"""Checks before jobs are submitted, with a Slurm of scripts. tests/slurm has a real one."""

import pytest

from poet.system.errors import UserError
from suite.submission import _check_queue


def test_a_queue_that_does_not_answer_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2\nexit 1\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(UserError, match="squeue does not say which jobs are left of an earlier pipeline .*Unable to contact slurm controller"):
        _check_queue()
