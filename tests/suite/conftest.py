"""Scales that many tests of the suite read, loaded once."""

import pytest

from suite.collection import load_suite
from suite.scale import load_scale


@pytest.fixture(scope="session")
def smoke():
    """The smoke scale's suite, with seed 0."""
    return load_suite({"scale": "smoke", "seeds": [0]})


@pytest.fixture(scope="session")
def mini():
    """The mini scale, with seed 0."""
    return load_scale({"scale": "mini", "seeds": [0]})
