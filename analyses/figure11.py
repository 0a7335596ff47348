"""Figure 11: v'Pv of every matrix along training. Run, definitions and rule: ``analyses.probing``."""

from analyses.probing import COSINE, grid_artifact

ARTIFACT = grid_artifact(11, "P", COSINE)
