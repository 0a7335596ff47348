"""What the numbers of a finetuning run depend on beside its spec, its base and its data."""

from __future__ import annotations

import functools
from pathlib import Path

from poet.finetuning.methods import FINETUNERS
from poet.launch.sources import ROOT, digest, training_sources

#: Of every finetuning run, beside what its method's pretraining depends on.
OWN = ("spec", "methods", "examples", "metrics", "run")


def finetuning_sources(method: str, device: str, root: Path = ROOT) -> list[Path]:
    """The files that a finetuning method's runs depend on.

    Args:
        method: key in ``poet.finetuning.methods.FINETUNERS``.
        device: "cpu" or "cuda", where it trains.
        root: of the repository, or of a copy.
    """
    own = [root / "poet" / "finetuning" / f"{name}.py" for name in OWN]
    return sorted({*own, *training_sources(FINETUNERS[method].method, device, root)})


@functools.cache
def finetuning_digest(method: str, device: str) -> str:
    """Digest of :func:`finetuning_sources`."""
    return digest(finetuning_sources(method, device))
