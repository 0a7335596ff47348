"""The provenance of a run's numbers: commit, versions, machine."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from poet.launch.sources import PACKAGES, ROOT

#: Packages whose version can change a number, with the one that makes the data.
_PACKAGES = (*PACKAGES, "tokenizers")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None  # no git on this machine: null in the record
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def provenance(device: str, processes: int = 1) -> dict[str, Any]:
    """Commit and dirty flag (null outside a checkout), package versions, Python, machine and device. ``processes``: how many train the run together, each on its own device."""
    # Local settings do not count as changes: those that move a number are in the run's spec.
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!config", ":!workflow/profiles")
    unknown = _git("ls-files", "--others", "--exclude-standard", "poet")
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if changes is None else bool(changes or unknown),
        "versions": {"python": platform.python_version(), **{p: _version(p) for p in _PACKAGES}},
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "cpu": _cpu_model(),
            "cpus": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        },
        "device": torch.cuda.get_device_name() if device == "cuda" else f"cpu ({torch.get_num_threads()} threads)",
        "devices": processes,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }
