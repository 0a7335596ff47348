"""The cluster that all tests here share."""

from pathlib import Path

import pytest

from tests.slurm.cluster import Unavailable, cluster


def pytest_ignore_collect(config):
    """These tests take minutes and start daemons: they run where this folder is named (``make test-slurm``)."""
    named = any("slurm" in Path(argument.partition("::")[0]).parts for argument in config.args)
    return None if named else True


@pytest.fixture(scope="session", autouse=True)
def _cluster():
    try:
        with cluster():
            yield
    except Unavailable as reason:
        pytest.exit(f"skipped, no Slurm to test with: {reason}", returncode=0)  # one line for all tests
