"""Figure 22: singular values along training with POET, the last blocks (6 and 7 of the paper's eight)."""

from analyses.figures.common.spectra import POET, grid_artifact

ARTIFACT = grid_artifact(22, POET, group=2)
