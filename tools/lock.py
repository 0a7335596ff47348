"""Write ``requirements.lock`` and ``environment.yml`` from ``pyproject.toml``.

Resolves in an empty virtual environment, so that nothing that happens to be installed gets in. What only a CUDA build
of torch asks for is pinned in ``constraints-cuda.txt``: a machine with a CPU build never installs it.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Written by `make lock` from pyproject.toml.\n"


def resolve() -> list[str]:
    """Exact pins of everything that the project needs, sorted, without local version labels such as +cpu."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *project["optional-dependencies"]["suite"]], check=True)
        frozen = subprocess.run(
            [python, "-m", "pip", "freeze", "--all", "--exclude", "pip"], check=True, capture_output=True, text=True
        ).stdout.split()
    pins = sorted((pin.partition("+")[0] for pin in frozen), key=str.lower)
    return [pin + ("; platform_system == 'Linux'" if pin.startswith("triton==") else "") for pin in pins]


def environment(pins: list[str]) -> str:
    """A conda environment with the same pins. They stand in it one by one: Snakemake copies this file elsewhere."""
    listed = "".join(f'      - "{pin}"\n' for pin in pins)
    return (
        f"{HEADER}name: poet\nchannels: [conda-forge, nodefaults]\ndependencies:\n"
        f"  - python=3.11\n  - pip\n  - pip:\n{listed}"
    )


if __name__ == "__main__":
    pins = resolve()
    (ROOT / "requirements.lock").write_text(HEADER + "".join(f"{pin}\n" for pin in pins))
    (ROOT / "environment.yml").write_text(environment(pins))
