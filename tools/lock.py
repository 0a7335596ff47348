"""Write ``requirements.lock``, ``environment.yml`` and ``docs/requirements.txt`` from ``pyproject.toml``.

Resolves in an empty virtual environment, so that no other installed package gets in. Packages that only a CUDA build of torch
needs are pinned in ``constraints-cuda.txt``: a machine with a CPU build never installs them.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Written by `make lock` from pyproject.toml.\n"


def resolve() -> tuple[list[str], list[str]]:
    """Exact pins of the suite's packages, and of the further packages of its documentation.

    Both are sorted, without local version labels such as +cpu.
    """
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        suite = _install(python, extras["suite"])
        held = Path(folder) / "suite.txt"
        held.write_text("".join(f"{pin}\n" for pin in suite))
        both = _install(python, [*extras["docs"], "--constraint", str(held)])
    docs = [pin for pin in both if pin not in suite]
    return [pin + ("; platform_system == 'Linux'" if pin.startswith("triton==") else "") for pin in suite], docs


def _install(python: Path, wanted: list[str]) -> list[str]:
    """Install packages into an environment; returns the pins of all packages in it."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    command = [python, "-m", "pip", "freeze", "--all", "--exclude", "pip"]
    frozen = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return sorted((pin.partition("+")[0] for pin in frozen), key=str.lower)


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
