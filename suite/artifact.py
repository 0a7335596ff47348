"""The declaration of a table or figure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.claim import UNJUDGED_SCALES, Claim
from suite.context import Context
from suite.scale import Scale

#: In :attr:`Artifact.reads`: every artifact of ``snakemake all`` that reads no other.
EVERY = "*"


def _none(scale: Scale) -> list:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One table or figure.

    Attributes:
        label: its name in the paper.
        caption: one sentence; the scale is added to it where it is shown.
        outputs: files below ``results/<scale>/``; the first is named after the artifact.
        build: writes every file of ``outputs``.
        runs: the runs it needs at a scale.
        finetunings: the finetuning runs that it needs at a scale.
        in_all: whether ``snakemake all`` makes it; other artifacts, such as sweeps, are made only by name.
        timed: whether its numbers are times of the machine that builds it. A build from recorded runs takes the recorded ones.
        models: the models that it needs; it cannot be made at a scale that lacks one.
        claims: the paper's claims about it that can be checked; ``results/claims.csv`` has those of all artifacts.
        reads: names of the artifacts whose outputs it is built from, or :data:`EVERY`.
    """

    label: str
    caption: str
    outputs: tuple[str, ...]
    build: Callable[[Context], None]
    runs: Callable[[Scale], list[RunSpec]] = _none
    finetunings: Callable[[Scale], list[FinetuningSpec]] = _none
    in_all: bool = True
    timed: bool = False
    models: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    reads: tuple[str, ...] = ()

    @property
    def computes(self) -> bool:
        """Whether its own build computes its numbers: it has no runs at any scale and reads no other artifact."""
        return self.runs is _none and self.finetunings is _none and not self.reads

    @property
    def scale_free(self) -> bool:
        """Whether its numbers come from formulas and simulations alone, and so are the same at every scale."""
        return self.computes and not self.timed

    def specs(self, scale: Scale) -> list[RunSpec | FinetuningSpec]:
        """The specs of all runs and finetuning runs that it needs at a scale."""
        return [*self.runs(scale), *self.finetunings(scale)]

    def described(self, scale: Scale, note: str = "") -> str:
        """Its label and caption with the scale that it was made at, and a note if there is one."""
        made_at = ", ".join(filter(None, (scale.name, scale.corpus, scale.lacking)))
        where = "Independent of the scale." if self.scale_free else f"Scale: {made_at}."
        return " ".join(part for part in (f"{self.label}.", self.caption, note, where) if part)

    def missing(self, scale: Scale, *more: str) -> list[str]:
        """The models that a scale lacks, of those that the artifact needs and of those in ``more``."""
        return [model for model in dict.fromkeys((*self.models, *more)) if model not in scale.models]

    def why_unshown(self, claim: Claim, scale: Scale) -> str:
        """Why a scale cannot show a claim of this artifact; empty if it can."""
        if missing := self.missing(scale, *claim.models):
            unknown = [model for model in missing if model not in scale.settings.models]
            return f"the scale has no model {', '.join(unknown)}" if unknown else scale.lacking
        if scale.name in UNJUDGED_SCALES and not (self.scale_free or claim.exact):
            return f"{scale.name} checks the plumbing alone"
        return claim.paper_only if scale.name != "paper" else ""


def names_read(artifact: Artifact, artifacts: Mapping[str, Artifact]) -> list[str]:
    """The names of the artifacts that an artifact is built from: :attr:`Artifact.reads`, with :data:`EVERY` replaced by names."""
    plain = [name for name, other in artifacts.items() if other.in_all and not other.reads]
    return [name for read in artifact.reads for name in (plain if read == EVERY else [read])]
