"""What the numbers of a finetuning run depend on beside its spec and its base."""

from __future__ import annotations

import functools
from pathlib import Path

from poet.finetuning.methods import FINETUNERS
from poet.finetuning.problems import problem_of
from poet.finetuning.spec import FinetuningSpec
from poet.launch.sources import ROOT, data_sources, digest, training_sources

#: Of every finetuning run, beside what its method's pretraining depends on.
OWN = ("spec", "methods", "run", "problems/__init__", "problems/contract")
#: Of the runs of a problem, beside its own file.
OF_PROBLEM = {
    "classification": ("examples", "metrics"),
    "summarization": ("examples", "rouge", "problems/bart"),
    "infilling": ("examples", "problems/bart"),
}


def finetuning_sources(spec: FinetuningSpec, device: str, root: Path = ROOT) -> list[Path]:
    """The files that a finetuning run depends on.

    Args:
        spec: the run.
        device: "cpu" or "cuda", where it trains.
        root: of the repository, or of a copy.
    """
    return _sources(spec.method, problem_of(spec.task), device, root)


def finetuning_digest(spec: FinetuningSpec, device: str) -> str:
    """Digest of :func:`finetuning_sources`."""
    return _digest(spec.method, problem_of(spec.task), device)


def _sources(method: str, problem: str, device: str, root: Path) -> list[Path]:
    own = [root / "poet" / "finetuning" / f"{name}.py" for name in (*OWN, *OF_PROBLEM[problem], f"problems/{problem}")]
    return sorted({*own, *training_sources(FINETUNERS[method].method, device, root)})


@functools.cache
def _digest(method: str, problem: str, device: str) -> str:
    return digest(_sources(method, problem, device, ROOT))


@functools.cache
def task_digest() -> str:
    """Digest of the files that a task's examples are made by, those of the stand-ins' corpus among them."""
    return digest([*(ROOT / "poet" / "finetuning" / "tasks").rglob("*.py"), *data_sources("enwik8")])
