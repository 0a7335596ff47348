"""The order in which to run artifacts: most evidence for each device-hour first.

Evidence is the number of the paper's claims that an artifact's runs let the scale judge (``suite.artifact.Artifact.why_unshown``). They
count when the last of these runs is done. The next artifact is always the one with most claims for each hour that it still adds.
Runs that it shares with earlier artifacts add no hours.
"""

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
    """An artifact in the order of the plan.

    Attributes:
        artifact: its name.
        claims: number of claims that its runs let the scale judge.
        runs: names of the runs that are not done and that no earlier artifact has, the cheapest first.
        hours: device-hours of these runs.
    """

    artifact: str
    claims: int
    runs: tuple[str, ...]
    hours: float


def _parts(suite: Suite, artifact: str) -> dict[str, Artifact]:
    """An artifact and the artifacts that it is built from, by name."""
    sources = names_read(suite.artifacts[artifact], suite.artifacts)
    return {artifact: suite.artifacts[artifact]} | {name: found for source in sources for name, found in _parts(suite, source).items()}


def needed(suite: Suite, artifact: str) -> dict[str, RunSpec | FinetuningSpec]:
    """The runs and finetuning runs that an artifact rests on, by name: its own, and those of the artifacts that it is built from."""
    return {spec.name: spec for name in _parts(suite, artifact) for spec in suite.asked[name]}


def evidence(suite: Suite, artifact: str) -> int:
    """How many claims of an artifact, and of the artifacts that it is built from, their runs let the scale judge."""
    parts = [part for part in _parts(suite, artifact).values() if part.runs(suite.scale)]
    return sum(not claim.exact and not part.why_unshown(claim, suite.scale) for part in parts for claim in part.claims)


def in_order(needs: Mapping[str, set[str]], claims: Mapping[str, int], hours: Mapping[str, float]) -> list[Step]:
    """The artifacts in the order of :data:`RULE`. ``hours`` are the device-hours of each run, 0 for one that is done."""
    waiting, chosen, steps = list(needs), set(), []
    while waiting:
        added = {name: sum(hours[run] for run in needs[name] - chosen) for name in waiting}
        best = max(waiting, key=lambda name: (claims[name] / added[name] if added[name] else math.inf, -added[name]))
        new = sorted((run for run in needs[best] - chosen if hours[run]), key=lambda run: (hours[run], run))
        steps.append(Step(best, claims[best], tuple(new), added[best]))
        chosen |= needs[best]
        waiting.remove(best)
    return steps
