"""Claims, artifacts and what was measured for them, of whatever a test leaves open."""

from typing import Any

from analyses.common.evidence import exactly
from suite.artifact import Artifact
from suite.claim import NEGATIVE, Claim, Evidence


ABOUT = {"label": "Table 0", "caption": "Nothing.", "outputs": (), "build": lambda context: None}


def artifact(**options: Any) -> Artifact:
    """An artifact of runs, if of none at the scale that is asked for."""
    return Artifact(**{**ABOUT, "runs": lambda scale: [], **options})


def computed(**options: Any) -> Artifact:
    """An artifact without runs at any scale."""
    return Artifact(**{**ABOUT, **options})


def claim(**options: Any) -> Claim:
    about = {"key": "t-c", "place": "Section 1", "says": "It falls.", "kind": "ordering", "rule": "Below zero.", "unit": "nats"}
    return Claim(**{**about, "region": NEGATIVE, "measure": lambda context: exactly(-1.0), **options})


def evidence(low: float, high: float, effect: float | None = None, **options: Any) -> Evidence:
    """An interval, around its middle if nothing is said of the effect, of three seeds."""
    return Evidence(**{"effect": (low + high) / 2 if effect is None else effect, "low": low, "high": high, "n": 3, **options})
