"""Figure 13: trace of P over its dimension, for every matrix along training. Run, definitions and rule: ``analyses.probing``."""

from analyses.probing import TRACE, grid_artifact

ARTIFACT = grid_artifact(13, "P", TRACE)
