"""Figure 14: trace of R over its dimension, for every matrix along training. Run, definitions and rule: ``analyses.probing``."""

from analyses.probing import TRACE, grid_artifact

ARTIFACT = grid_artifact(14, "R", TRACE)
