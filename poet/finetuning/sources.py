"""The source files that the numbers of a finetuning run depend on, beside its spec and its base."""

from __future__ import annotations

import functools
from pathlib import Path

from poet.finetuning.methods import FINETUNERS
from poet.finetuning.problems import problem_of
from poet.finetuning.spec import FinetuningSpec
from poet.finetuning.tasks import TASKS
from poet.launch.sources import PACKAGES, ROOT, data_sources, digest, file_digests, training_sources

#: Files of every finetuning run, beside those of its method's pretraining.
OWN = ("spec", "methods", "run", "problems/__init__", "problems/contract")
#: Further files of the runs of a problem, beside the problem's own file.
OF_PROBLEM = {
    "classification": ("examples", "metrics"),
    "summarization": ("examples", "rouge", "problems/bart"),
    "infilling": ("examples", "problems/bart"),
}
#: Further packages that a problem computes with, beside those of pretraining.
PACKAGES_OF = {
    "classification": ("tokenizers", "scikit-learn", "scipy"),
    "summarization": ("tokenizers", "rouge_score", "nltk"),
    "infilling": ("tokenizers",),
}


def finetuning_sources(spec: FinetuningSpec, device: str, root: Path = ROOT) -> list[Path]:
    """The files that a finetuning run depends on.

    Args:
        spec: the run.
        device: "cpu" or "cuda", where it trains.
        root: of the repository, or of a copy.
    """
    return _sources(spec.method, spec.task, device, root)


def finetuning_files(spec: FinetuningSpec, device: str) -> dict[str, str]:
    """:func:`poet.launch.sources.file_digests` of :func:`finetuning_sources`."""
    return file_digests(finetuning_sources(spec, device), packages=_packages(spec.task))


def finetuning_digest(spec: FinetuningSpec, device: str, root: Path = ROOT) -> str:
    """Digest of :func:`finetuning_sources`."""
    return _digest(spec.method, spec.task, device, root)


def _sources(method: str, task: str, device: str, root: Path) -> list[Path]:
    problem = problem_of(task)
    own = {root / "poet" / "finetuning" / f"{name}.py" for name in (*OWN, *OF_PROBLEM[problem], f"problems/{problem}")}
    # A task's classes and metric are defined in its own file and in those of its base classes.
    kinds = type(TASKS[task]).__mro__ if task in TASKS else ()
    own |= {root / f"{kind.__module__.replace('.', '/')}.py" for kind in kinds if kind.__module__.startswith("poet.")}
    return sorted({*own, root / "poet" / "data" / "tokenizer.py", *training_sources(FINETUNERS[method].method, device, root)})


def _packages(task: str) -> tuple[str, ...]:
    return (*PACKAGES, *PACKAGES_OF[problem_of(task)])


@functools.cache
def _digest(method: str, task: str, device: str, root: Path) -> str:
    return digest(_sources(method, task, device, root), root, _packages(task))


@functools.cache
def task_digest() -> str:
    """Digest of the files that make a task's examples, including those of the stand-ins' corpus."""
    own = ROOT / "poet" / "finetuning"
    return digest([own / "examples.py", *(own / "tasks").rglob("*.py"), *data_sources("enwik8")])
