"""Claims, artifacts and what was measured for them, of whatever a test leaves open."""

from typing import Any

from analyses.common.evidence import exactly
from suite.artifact import Artifact
from suite.claim import NEGATIVE, Claim, Evidence


def artifact(**options: Any) -> Artifact:
    about = {"label": "Table 0", "caption": "Nothing.", "outputs": (), "runs": lambda scale: [], "build": lambda context: None}
    return Artifact(**{**about, **options})


def claim(**options: Any) -> Claim:
    about = {"key": "t-c", "place": "Section 1", "says": "It falls.", "kind": "ordering", "rule": "Below zero.", "unit": "nats"}
    return Claim(**{**about, "region": NEGATIVE, "measure": lambda context: exactly(-1.0), **options})


def evidence(low: float, high: float, effect: float | None = None, **options: Any) -> Evidence:
    """An interval, around its middle if nothing is said of the effect, of three seeds."""
    return Evidence(**{"effect": (low + high) / 2 if effect is None else effect, "low": low, "high": high, "n": 3, **options})
