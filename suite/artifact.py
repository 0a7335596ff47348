"""What a table or figure has to say of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.claim import UNJUDGED_SCALES, Claim
from suite.context import Context
from suite.scale import Scale

#: See :attr:`Artifact.reads`.
EVERY = "*"


def _none(scale: Scale) -> list:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One table or figure.

    Attributes:
        label: its name in the paper.
        caption: one sentence; the scale is added to it where it is shown.
        outputs: files below ``results/<scale>/``, the first one being its target's name.
        build: writes every file of ``outputs``.
        runs: the runs it needs at a scale.
        finetunings: the finetuning runs that it needs at a scale.
        in_all: whether ``snakemake all`` makes it (sweeps are asked for by name).
        scale_free: its numbers come from formulas and simulations alone, and are the same at every scale.
        models: it cannot do without these; ``snakemake all`` leaves it out at a scale that lacks one.
        claims: what the paper says about it that can be checked; gathered in ``results/claims.csv``.
        reads: names of artifacts whose outputs it is built from; :data:`EVERY` stands for all of ``snakemake all`` that
            read no other.
    """

    label: str
    caption: str
    outputs: tuple[str, ...]
    build: Callable[[Context], None]
    runs: Callable[[Scale], list[RunSpec]] = _none
    finetunings: Callable[[Scale], list[FinetuningSpec]] = _none
    in_all: bool = True
    scale_free: bool = False
    models: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    reads: tuple[str, ...] = ()

    @property
    def computes(self) -> bool:
        """Whether it has no runs at any scale: its numbers are computed where it is built."""
        return self.runs is _none and self.finetunings is _none and not self.reads

    def specs(self, scale: Scale) -> list[RunSpec | FinetuningSpec]:
        """All that it needs at a scale."""
        return [*self.runs(scale), *self.finetunings(scale)]

    def described(self, scale: Scale, note: str = "") -> str:
        """Its label and caption with the scale that it was made at, and a note if there is one."""
        where = "Independent of the scale." if self.scale_free else f"Scale: {scale.name}, {scale.corpus}."
        return " ".join(part for part in (f"{self.label}.", self.caption, note, where) if part)

    def missing(self, scale: Scale, *more: str) -> list[str]:
        """The models that a scale lacks of those that it cannot do without, and of some more."""
        return [model for model in dict.fromkeys((*self.models, *more)) if model not in scale.models]

    def unshown(self, claim: Claim, scale: Scale) -> str:
        """Why a scale cannot show one of its claims; empty if it can."""
        if missing := self.missing(scale, *claim.models):
            return f"the scale has no model {', '.join(missing)}"
        if scale.name in UNJUDGED_SCALES and not (self.scale_free or claim.exact):
            return f"{scale.name} checks the plumbing alone"
        return claim.paper_only if scale.name != "paper" else ""


def names_read(artifact: Artifact, artifacts: Mapping[str, Artifact]) -> list[str]:
    """The names of those among ``artifacts`` whose outputs an artifact is built from; see :attr:`Artifact.reads`."""
    plain = [name for name, other in artifacts.items() if other.in_all and not other.reads]
    return [name for read in artifact.reads for name in (plain if read == EVERY else [read])]
