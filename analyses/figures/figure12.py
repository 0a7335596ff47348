"""Figure 12: v'Rv of every matrix along training. Run, definitions and rule: ``analyses.figures.common.probing``."""

from analyses.figures.common.probing import COSINE, grid_artifact

ARTIFACT = grid_artifact(12, "R", COSINE)
