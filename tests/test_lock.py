"""Pins: the lock, the conda environment, and what the documentation needs agree."""

import re
import tomllib

import pytest
import yaml


@pytest.fixture
def project(repository):
    return tomllib.loads((repository / "pyproject.toml").read_text())["project"]


def pins_of(path):
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def by_name(pins):
    return {pin.partition("==")[0].lower().replace("_", "-"): pin.partition(";")[0].partition("==")[2] for pin in pins}


def test_the_lock_and_the_conda_environment_have_the_same_pins(repository, project):
    lock = pins_of(repository / "requirements.lock")
    environment = yaml.safe_load((repository / "environment.yml").read_text())
    assert environment["dependencies"][-1]["pip"] == lock
    assert all(re.fullmatch(r"[A-Za-z0-9_.\-]+==[^=+;]+(; platform_system == 'Linux')?", pin) for pin in lock)
    for wanted in project["optional-dependencies"]["suite"]:
        name, version = wanted.partition(";")[0].strip().split("==")
        assert by_name(lock)[name.lower()] == version


def test_the_documentation_adds_packages_and_changes_none(repository, project):
    lock, docs = (by_name(pins_of(repository / name)) for name in ("requirements.lock", "docs/requirements.txt"))
    assert not set(lock) & set(docs)
    (wanted,) = project["optional-dependencies"]["docs"]
    name, version = wanted.split("==")
    assert docs[name] == version
