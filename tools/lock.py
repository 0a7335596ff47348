"""Write ``requirements.lock``, ``environment.yml`` and ``docs/requirements.txt`` from ``pyproject.toml``.

pip resolves without regard to what is installed, and installs nothing. Packages that only a CUDA build of torch needs
are pinned in ``constraints-cuda.txt``: a machine with a CPU build never installs them.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Written by `make lock` from pyproject.toml.\n"


def resolve() -> tuple[list[str], list[str]]:
    """Exact pins of the suite's packages, and of the further packages of its documentation."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    suite = _pins(extras["suite"])
    docs = [pin for pin in _pins([*extras["docs"], *suite]) if pin not in suite]
    return [pin + ("; platform_system == 'Linux'" if pin.startswith("triton==") else "") for pin in suite], docs


def _pins(wanted: list[str]) -> list[str]:
    """The pins of some packages and of all that they need, sorted, without local version labels such as +cpu."""
    options = ["--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    command = [sys.executable, "-m", "pip", "install", *options, *wanted]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    found = (package["metadata"] for package in report["install"])
    return sorted((f"{one['name']}=={one['version'].partition('+')[0]}" for one in found), key=str.lower)


def environment(pins: list[str]) -> str:
    """A conda environment with the same pins, listed and not read from ``requirements.lock``: Snakemake copies this file elsewhere."""
    listed = "".join(f'      - "{pin}"\n' for pin in pins)
    return (
        f"{HEADER}name: poet\nchannels: [conda-forge, nodefaults]\ndependencies:\n"
        f"  - python=3.11\n  - pip\n  - pip:\n{listed}"
    )


if __name__ == "__main__":
    pins, docs = resolve()
    for file, listed in (("requirements.lock", pins), ("docs/requirements.txt", docs)):
        (ROOT / file).write_text(HEADER + "".join(f"{pin}\n" for pin in listed))
    (ROOT / "environment.yml").write_text(environment(pins))
