"""In which order to run: most evidence for each device-hour first.

Evidence is counted in claims of the paper: those of an artifact that the scale can judge (``suite.artifact.unshown``) and that rest on
its runs. They count when the last of these runs is done. Again and again, the artifact comes next whose claims are most for
the hours that it still adds, when the runs of those before it are shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.artifact import Artifact, names_read
from suite.collection import Suite

RULE = (
    "Evidence is the number of the paper's claims that an artifact's runs let this scale judge; the artifact with most of it "
    "for each hour that it still adds comes first, and within it the cheapest run."
)


@dataclass(frozen=True, slots=True)
class Step:
    """An artifact in its place.

    Attributes:
        artifact: its name.
        claims: that it lets be judged.
        runs: names of those that it adds, the cheapest first; runs of earlier artifacts are not among them.
        hours: what they take.
    """

    artifact: str
    claims: int
    runs: tuple[str, ...]
    hours: float


def _parts(suite: Suite, artifact: str) -> dict[str, Artifact]:
    """An artifact and those that it is built from, by name."""
    sources = names_read(suite.artifacts[artifact], suite.artifacts)
    return {artifact: suite.artifacts[artifact]} | {name: found for source in sources for name, found in _parts(suite, source).items()}


def needed(suite: Suite, artifact: str) -> dict[str, RunSpec]:
    """The runs that an artifact rests on, by name: its own, and those of the artifacts that it is built from."""
    return {spec.name: spec for part in _parts(suite, artifact).values() for spec in part.runs(suite.scale)}


def finetuned(suite: Suite, artifact: str) -> dict[str, FinetuningSpec]:
    """The finetuning runs that an artifact rests on, by name."""
    return {spec.name: spec for part in _parts(suite, artifact).values() for spec in part.finetunings(suite.scale)}


def evidence(suite: Suite, artifact: str) -> int:
    """How many claims of an artifact, and of those that it is built from, their runs let the scale judge."""
    parts = [part for part in _parts(suite, artifact).values() if part.runs(suite.scale)]
    return sum(not claim.exact and not part.unshown(claim, suite.scale) for part in parts for claim in part.claims)


def in_order(needs: Mapping[str, set[str]], claims: Mapping[str, int], hours: Mapping[str, float]) -> list[Step]:
    """Artifacts in the order of the rule.

    Args:
        needs: names of the runs of each artifact.
        claims: of each artifact.
        hours: of each run; 0 for one that is done, which nobody has to wait for.
    """
    waiting, chosen, steps = list(needs), set(), []
    while waiting:
        added = {name: sum(hours[run] for run in needs[name] - chosen) for name in waiting}

        def worth(name: str, added: Mapping[str, float] = added) -> tuple[float, float]:
            return (claims[name] / added[name] if added[name] else math.inf), -added[name]

        best = max(waiting, key=worth)
        new = sorted((run for run in needs[best] - chosen if hours[run]), key=lambda run: (hours[run], run))
        steps.append(Step(best, claims[best], tuple(new), added[best]))
        chosen |= needs[best]
        waiting.remove(best)
    return steps
